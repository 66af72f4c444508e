"""The gvisor class: each activation is one sandbox of runsc, which serves once.

Its first container holds the kernel that all containers of the actor share, and with it their
network. runsc takes the addresses off the link when it starts, so a pair of namespaces serves one
activation, which is what the pool hands out.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path

from atenet.errors import AteError
from atenet.gvisor import STATES, Runtime, make_owned
from atenet.images import Image, ImageStore
from atenet.proto import ateapi_pb2
from atenet.worker.sandbox import account, output
from atenet.worker.sandbox.bubblewrap import SystemView
from atenet.worker.sandbox.cgroup import Cgroups
from atenet.worker.sandbox.gvisor import bundle, rootfs
from atenet.worker.sandbox.gvisor.group import Container, GvisorGroup, container_name
from atenet.worker.sandbox.gvisor.host import HostFiles
from atenet.worker.sandbox.gvisor.roots import Root, Roots, let_go
from atenet.worker.sandbox.gvisor.runsc import MEMORY_SECONDS, Runsc, RunscTimeoutError
from atenet.worker.sandbox.interface import Launch, MemoryUnusableError, NotNowError
from atenet.worker.sandbox.output import OutputLog
from atenet.worker.sandbox.plan import DEFAULT_PATH, ContainerPlan

__all__ = ["GvisorSandbox"]


class GvisorSandbox:
    """`program`: runsc; `prefix`: the worker's own, for the directory of its sandboxes' state and of
    what an activation needs on the host while it runs; `disk`: its own directory for what cannot be there."""

    sandbox_class = "gvisor"

    def __init__(
        self,
        program: Path,
        prefix: str,
        cgroups: Cgroups,
        threads: Executor,
        *,
        disk: Path,
        images: ImageStore | None = None,
    ) -> None:
        """Blocks for some ms. Raises AteError when the program does not run, somebody else has the place, or no
        file system takes the root directory."""
        make_owned(STATES)
        self.runtime: Runtime | None = Runtime.of(program)
        self._runsc = Runsc(program, STATES / prefix)
        self._scratch = self._runsc.state / "work"
        self._cgroups = cgroups
        self._threads = threads
        self._roots = Roots(images, HostFiles())
        self._view = SystemView.scan()
        disk.mkdir(mode=0o700, parents=True, exist_ok=True)
        in_memory = rootfs.place(STATES, disk) == STATES
        self._root = (self._scratch if in_memory else disk) / "root"

    def check(
        self, template: ateapi_pb2.ActorTemplate, roots: Mapping[str, str] | None = None
    ) -> None:
        """Raises InvalidTemplateError for what this class cannot do."""
        self._roots.check(template, roots or {})

    async def start(self, launch: Launch) -> GvisorGroup:
        loop = asyncio.get_running_loop()
        roots = await loop.run_in_executor(self._threads, self._roots.take, launch)

        def forget(launch: Launch) -> None:
            self._forget(launch)
            let_go(roots.values())
            roots.clear()

        group = GvisorGroup(self._runsc, launch, self._place(launch), self._threads, forget)
        group.roots = {name: root.said for name, root in roots.items()}
        try:
            await loop.run_in_executor(self._threads, self._prepare, launch)
            for number, plan in enumerate(launch.containers):
                start = partial(self._start, launch, plan, number, roots[plan.name])
                group.add(await loop.run_in_executor(self._threads, start))
            group.watch()
        except BaseException as e:
            await group.stop(0)
            if isinstance(e, OSError):
                # No process to be had, say: no reason to give up a memory.
                kind = AteError if launch.memory is None else NotNowError
                raise kind(f"the sandbox cannot be made: {e}") from e
            raise
        return group

    def clear(self) -> None:
        """Removes what interrupted activations left. Blocks; only before anything is started."""
        self._runsc.kill_all()
        self._runsc.forget()
        shutil.rmtree(self._root, ignore_errors=True)
        self._cgroups.clear()

    def _place(self, launch: Launch) -> Path:
        return self._scratch / launch.network.name

    def _forget(self, launch: Launch) -> None:
        self._cgroups.remove(launch.network.name)
        shutil.rmtree(self._place(launch), ignore_errors=True)

    def _prepare(self, launch: Launch) -> None:
        for bind in (bind for plan in launch.containers for bind in plan.binds):
            if not bind.source.exists():
                raise AteError(f"{bind.source}, to be mounted at {bind.target}, is missing")
        for directory in launch.durable:
            account.hand_over(directory, bundle.ACCOUNT)
        launch.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._cgroups.create(launch.network.name, launch.limits)
        make_owned(STATES)
        for directory in (self._runsc.state, self._scratch, self._place(launch)):
            directory.mkdir(mode=0o700, exist_ok=True)
        if not self._root.exists():
            rootfs.build(self._root, self._view)
        facts = self._place(launch) / "facts"
        facts.mkdir(mode=0o755)
        for name, text in launch.facts.items():
            (facts / name).write_text(text)

    def _start(self, launch: Launch, plan: ContainerPlan, number: int, root: Root) -> Container:
        """Blocks until the container runs."""
        first = number == 0
        place = self._place(launch) / plan.name
        place.mkdir(mode=0o700)
        where = self._where(launch, root.image, container_name(launch, 0), first)
        content = bundle.spec(_completed(plan, root.image), where)
        bundle.write(place / "bundle", content)
        log = OutputLog(output.path_for(launch.logs, plan.name), bundle.ACCOUNT)
        name = container_name(launch, number)
        pid = place / "pid"
        try:
            call = partial(self._runsc.call, place=place, output=log.writer)
            given = (f"--bundle={place / 'bundle'}", f"--pid-file={pid}")
            admit = partial(self._admit, launch)
            if launch.memory is None:
                call("create", *given, name, admit=admit)
                call("start", name)
            else:
                restore = ("restore", "--detach", "--background", f"--image-path={launch.memory}")
                call(*restore, *given, name, admit=admit, seconds=MEMORY_SECONDS)
            pidfd = os.pidfd_open(int(pid.read_text())) if first else -1
        except AteError as e:
            log.fetch()
            said = output.tail(log.path)
            log.close()
            kind = AteError
            if launch.memory is not None:
                hung = isinstance(e, RunscTimeoutError)
                kind = NotNowError if hung else MemoryUnusableError
            raise kind(f"{e.message}\n{said}" if said else e.message, hint=e.hint) from e
        except BaseException:
            log.close()
            raise
        return Container(name, plan.name, log, pidfd)

    def _where(
        self, launch: Launch, image: Image | None, sandbox: str, first: bool
    ) -> bundle.Place:
        return bundle.Place(
            root=self._root if image is None else image.rootfs,
            system=rootfs.system_binds(self._view) if image is None else (),
            facts=self._place(launch) / "facts",
            network=launch.network.runtime_path,
            sandbox=sandbox,
            first=first,
        )

    def _admit(self, launch: Launch, pid: int) -> None:
        self._cgroups.admit(launch.network.name, pid, launch.limits)


def _completed(plan: ContainerPlan, image: Image | None) -> ContainerPlan:
    """What the template leaves out, from its image."""
    if image is None:
        return plan
    # These two every plan has; the image knows better, unless the template names others.
    ours = {"PATH": DEFAULT_PATH, "HOME": account.HOME}
    named = {k: v for k, v in plan.environment.items() if ours.get(k) != v}
    own_directory = plan.working_dir == account.HOME
    return replace(
        plan,
        command=plan.command or image.command,
        environment={**ours, "HOME": "/tmp", **image.environment, **named},  # noqa: S108 - in the sandbox
        working_dir=image.working_dir if own_directory else plan.working_dir,
    )
