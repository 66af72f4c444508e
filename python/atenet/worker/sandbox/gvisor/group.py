"""A running activation of the gvisor class: stood still, saved, let go on, ended."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atenet.worker.sandbox import output
from atenet.worker.sandbox.freezer import FreezeUnavailableError
from atenet.worker.sandbox.gvisor.runsc import MEMORY_SECONDS, Runsc, RunscError, kill
from atenet.worker.sandbox.interface import Exit, Launch, MemoryNotSavedError
from atenet.worker.sandbox.output import OutputLog

__all__ = ["Container", "GvisorGroup", "container_name"]

_KILL_SECONDS = 10.0
_KILLED = 128 + signal.SIGKILL
_LATER_SECONDS = 0.5
# Whatever ended sooner than runsc can look ended by itself.
_BRIEF_SECONDS = 0.25


def container_name(launch: Launch, number: int) -> str:
    """runsc's id of one container: it takes the beginning of an id for the id, so none may be the
    beginning of another. The actor's uid comes first: by that a fence finds it."""
    return f"{_activation(launch)}.{number}-{launch.containers[number].name}"


def _activation(launch: Launch) -> str:
    return f"{launch.actor_uid}.{launch.network.name[-8:]}"


@dataclass
class Container:
    """`name`: runsc's id; `pidfd`: of the sandbox, in the first container; -1 in others."""

    name: str
    plan: str
    log: OutputLog
    pidfd: int


class GvisorGroup:
    """The containers of one activation. `place`: its directory; `forget` removes what is left."""

    def __init__(
        self,
        runsc: Runsc,
        launch: Launch,
        place: Path,
        threads: Executor,
        forget: Callable[[Launch], None],
    ) -> None:
        self._runsc = runsc
        self._launch = launch
        self._place = place
        self._threads = threads
        self._forget = forget
        self._containers: list[Container] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._waits: list[asyncio.subprocess.Process] = []
        self._frozen = False
        self._killed = False
        self.roots: Mapping[str, str] = {}
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[Exit] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()

    def add(self, container: Container) -> None:
        container.log.close_writer()
        self._containers.append(container)
        self._tasks.append(asyncio.ensure_future(container.log.copy(self._threads)))
        if container.pidfd >= 0:
            asyncio.get_running_loop().add_reader(container.pidfd, self._sandbox_gone)

    def watch(self) -> None:
        """All containers run: notes the first that ends."""
        self._tasks += [asyncio.ensure_future(self._see_off(c)) for c in self._containers]

    async def check_freezable(self) -> None:
        """The kernel that would stand still is the actor's own: nothing of the host's is needed."""

    async def freeze(self) -> None:
        if self._frozen:
            return
        try:
            await self._call("pause", self._first)
        except RunscError as e:
            # It may have come half-way: in time only for the answer, say.
            with suppress(RunscError):
                await self._call("resume", self._first)
            raise FreezeUnavailableError(e.message) from e
        self._frozen = True

    async def thaw(self) -> None:
        if self._frozen:
            await self._call("resume", self._first)
            self._frozen = False

    async def save(self, directory: Path) -> None:
        """Writes the memory of a frozen group. Raises MemoryNotSavedError; it then is as before."""
        words = ("checkpoint", f"--image-path={directory}", "--compression=none")
        try:
            await self._call(
                *(*words, "--leave-running", "--exclude-committed-zero-pages", self._first),
                seconds=MEMORY_SECONDS,
            )
        except RunscError as e:
            await self._on_thread(_empty, directory)
            raise MemoryNotSavedError(e.message) from e

    async def stop(self, wait: float) -> None:
        if wait > 0 and self._containers and not self._frozen and not self._gone.done():
            with suppress(RunscError):
                for container in self._containers:
                    await self._call("kill", container.name, "TERM")
                await asyncio.wait([self._gone], timeout=wait)
        self._kill_sandbox()
        if self._containers:
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.shield(self._gone)
        await self._on_thread(self._remove)
        await self._settle()
        await self._on_thread(self._forget, self._launch)

    @property
    def _first(self) -> str:
        return self._containers[0].name

    def _kill_sandbox(self) -> None:
        self._killed = not self._gone.done()
        for container in self._containers:
            if container.pidfd >= 0 and not self._gone.done():
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(container.pidfd, signal.SIGKILL)

    def _remove(self) -> None:
        """What runsc keeps of them, and what a start that failed half-way left. Blocks.

        `runsc delete` would do the same and no more: the sandbox is dead, its file servers end with
        it, and what is kept are two files a container. But it is a large program to execute.
        """
        mine = f"{_activation(self._launch)}."

        def named(words: Sequence[str]) -> bool:
            return any(word.startswith(mine) for word in words)

        kill(named)
        for left in self._runsc.state.glob(f"*{mine}*"):
            left.unlink(missing_ok=True)

    async def _settle(self) -> None:
        """Ends what was started beside it, and closes what is open. Repeatable."""
        tasks, self._tasks = self._tasks, []
        for process in self._waits:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
        await asyncio.gather(*tasks, return_exceptions=True)
        for container in self._containers:
            container.log.close()
            if container.pidfd >= 0:
                os.close(container.pidfd)
        self._containers = []
        if not self.exited.done():
            self.exited.set_result(Exit("", _KILLED, ""))

    def _sandbox_gone(self) -> None:
        loop = asyncio.get_running_loop()
        for container in self._containers:
            if container.pidfd >= 0:
                loop.remove_reader(container.pidfd)
        if not self._gone.done():
            self._gone.set_result(None)

    async def _see_off(self, container: Container) -> None:
        """Notes how it ended, with its last words."""
        if self._launch.memory is not None:
            # A program of its own, for which a request that woke the actor need not wait.
            await asyncio.wait([self._gone], timeout=_LATER_SECONDS)
        began = asyncio.get_running_loop().time()
        status = None if self._gone.done() else await self._wait_for(container)
        if status is None:
            # It ended before runsc could look, or was killed: the sandbox's end is what counts.
            await asyncio.shield(self._gone)
            brief = asyncio.get_running_loop().time() - began < _BRIEF_SECONDS
            status = -1 if brief and not self._killed else _KILLED
        await asyncio.to_thread(container.log.fetch)
        text = await asyncio.to_thread(output.tail, container.log.path)
        if not self.exited.done():
            self.exited.set_result(Exit(container.plan, status, text))

    async def _wait_for(self, container: Container) -> int | None:
        """Its exit status, once it has ended; None when runsc cannot tell."""
        log = self._place / container.plan / "wait.log"
        waiting = await asyncio.create_subprocess_exec(
            *self._runsc.wait_command(container.name, log),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._waits.append(waiting)
        said, _ = await waiting.communicate()
        return _status(said)

    async def _call(self, *words: str, seconds: float = 20.0) -> None:
        await self._on_thread(lambda: self._runsc.call(*words, place=self._place, seconds=seconds))

    async def _on_thread(self, call: Callable[..., object], *given: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, call, *given)


def _status(said: bytes) -> int | None:
    """As a shell would say it."""
    try:
        return int(json.loads(said)["exitStatus"])
    except (ValueError, KeyError, TypeError):
        return None


def _empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
