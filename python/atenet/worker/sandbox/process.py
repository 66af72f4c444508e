"""The process class: the actor's command on the host's kernel, boxed in by bubblewrap."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path

from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.proto import ateapi_pb2
from atenet.worker.network import GATEWAY_ADDRESS
from atenet.worker.sandbox import account, bubblewrap, child, output, seccomp
from atenet.worker.sandbox.cgroup import Cgroups
from atenet.worker.sandbox.child import Child
from atenet.worker.sandbox.freezer import Freezer
from atenet.worker.sandbox.interface import Exit, Launch, MemoryNotSavedError
from atenet.worker.sandbox.limits import apply_rlimits
from atenet.worker.sandbox.output import OutputLog
from atenet.worker.sandbox.plan import ContainerPlan, InvalidTemplateError

__all__ = ["ProcessSandbox"]

_log = logging.getLogger(__name__)


class ProcessSandbox:
    """Starts each container under bubblewrap in the activation's runtime namespace.

    `scratch`: directory for what an activation needs on the host while it runs; `threads`: never
    end before the worker does (see `child.start`).
    """

    sandbox_class = "process"
    runtime: Runtime | None = None

    def __init__(
        self, scratch: Path, cgroups: Cgroups, threads: Executor, *, freezer: Freezer
    ) -> None:
        _require("bwrap", "nsenter", "setpriv")
        self._scratch = scratch
        self._cgroups = cgroups
        self.freezer = freezer
        self._threads = threads
        self._system = bubblewrap.SystemView.scan()
        self._filter = seccomp.program()
        if self._filter is None:
            _log.warning("no system call filter for this machine type: actors run without one")

    def check(
        self, template: ateapi_pb2.ActorTemplate, roots: Mapping[str, str] | None = None
    ) -> None:
        """Raises InvalidTemplateError for what this class cannot do."""
        for index, container in enumerate(template.containers):
            if container.image:
                raise InvalidTemplateError(
                    f"template.containers[{index}].image {container.image!r}: "
                    "the process class has no images",
                    hint="leave it empty; programs come from /usr and from host_path volumes",
                )

    async def start(self, launch: Launch) -> ProcessGroup:
        loop = asyncio.get_running_loop()
        group = ProcessGroup(self, launch, self._threads)
        try:
            await loop.run_in_executor(self._threads, self._prepare, launch)
            for plan in launch.containers:
                started, log = await loop.run_in_executor(self._threads, self._launch, launch, plan)
                group.add(plan.name, Child(started), log)
        except BaseException as e:
            await group.stop(0)
            if isinstance(e, OSError):
                raise AteError(f"the sandbox cannot be made: {e}") from e
            raise
        return group

    def clear(self) -> None:
        """Removes what interrupted activations left. Blocks; only before anything is started."""
        self.freezer.clear()
        self._cgroups.clear()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def forget(self, launch: Launch) -> None:
        """Removes the activation's group and files; its processes are gone. Blocks."""
        self.freezer.remove(launch.network.name)
        self._cgroups.remove(launch.network.name)
        shutil.rmtree(self._place(launch), ignore_errors=True)

    def _place(self, launch: Launch) -> Path:
        return self._scratch / launch.network.name

    def _prepare(self, launch: Launch) -> None:
        owner = account.account_of(launch.actor_uid)
        for bind in (bind for plan in launch.containers for bind in plan.binds):
            if not bind.source.exists():
                raise AteError(f"{bind.source}, to be mounted at {bind.target}, is missing")
        for directory in launch.durable:
            account.hand_over(directory, owner)
        launch.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cgroups.create(launch.network.name, launch.limits)
        etc = self._place(launch)
        etc.mkdir(mode=0o700, parents=True)
        for name, text in account.files_for(launch.actor_name, owner, GATEWAY_ADDRESS).items():
            _write(etc / name, text, 0o644, owner=0)
        for plan in launch.containers:
            script = bubblewrap.start_script(plan.environment, plan.command)
            _write(etc / f"start.{plan.name}", script, 0o400, owner)

    def _launch(self, launch: Launch, plan: ContainerPlan) -> tuple[child.Started, OutputLog]:
        """Blocks until the sandbox exists and its limits hold."""
        owner = account.account_of(launch.actor_uid)
        place = self._place(launch)
        etc = {name: place / name for name in account.files_for("", 0, "")}
        words = bubblewrap.arguments(
            plan, launch.actor_name, self._system, etc, place / f"start.{plan.name}"
        )
        with contextlib.ExitStack() as descriptors:
            arguments = _in_memory(descriptors, "\0".join(words).encode())
            filtered = _in_memory(descriptors, self._filter) if self._filter else None
            log = OutputLog(output.path_for(launch.logs, plan.name), owner)
            descriptors.callback(log.close_writer)

            def command(status: int, gate: int) -> list[str]:
                fds = bubblewrap.Descriptors(arguments, status, gate, filtered)
                return bubblewrap.command(launch.network.runtime_path, owner, fds)

            def limit(pid: int) -> None:
                self._cgroups.admit(launch.network.name, pid, launch.limits)
                apply_rlimits(pid)

            passed = [arguments] if filtered is None else [arguments, filtered]
            try:
                return child.start(command, passed, log.writer, limit), log
            except AteError as e:
                log.fetch()
                said = output.tail(log.path)
                raise AteError(f"{e.message}: {said}" if said else e.message) from e
            except BaseException:
                log.close()
                raise


class ProcessGroup:
    """The containers of one activation."""

    def __init__(self, sandbox: ProcessSandbox, launch: Launch, threads: Executor) -> None:
        self._sandbox = sandbox
        self._launch = launch
        self._threads = threads
        self._children: list[Child] = []
        self._endings: list[asyncio.Task[None]] = []
        self.exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.roots: Mapping[str, str] = {}

    def add(self, container: str, process: Child, log: OutputLog) -> None:
        self._children.append(process)
        self._endings.append(asyncio.ensure_future(self._see_off(container, process, log)))

    async def check_freezable(self) -> None:
        await self._on_thread(self._sandbox.freezer.check, self._launch.network.name)

    async def freeze(self) -> None:
        owner = account.account_of(self._launch.actor_uid)
        await self._on_thread(
            self._sandbox.freezer.freeze,
            self._launch.network.name,
            lambda: account.processes_of(owner),
        )

    async def thaw(self) -> None:
        await self._on_thread(self._sandbox.freezer.thaw, self._launch.network.name)

    async def save(self, directory: Path) -> None:
        raise MemoryNotSavedError("the process class keeps no memory")

    async def stop(self, wait: float) -> None:
        await self.thaw()
        await asyncio.gather(*(process.stop(wait) for process in self._children))
        await asyncio.gather(*self._endings)
        await self._on_thread(self._sandbox.forget, self._launch)

    async def _on_thread(self, call: Callable[..., None], *given: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, call, *given)

    async def _see_off(self, container: str, process: Child, log: OutputLog) -> None:
        """Keeps what it says, to the last word, and notes how it ended."""
        try:
            await log.copy(self._threads)
            status = await asyncio.shield(process.exited)
        finally:
            log.close()
        said = await asyncio.to_thread(output.tail, log.path)
        if not self.exited.done():
            self.exited.set_result(Exit(container, status, said))


def _require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise AteError(
                f"{program} is not installed", hint="apt-get install bubblewrap util-linux"
            )


def _write(path: Path, text: str, mode: int, owner: int) -> None:
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, owner)


def _in_memory(stack: contextlib.ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("ate", os.MFD_CLOEXEC)
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
