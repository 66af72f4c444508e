"""One hosted actor from its start to its end; every failing step undoes the earlier ones."""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.proto import ateapi_pb2, atelet_pb2
from atenet.worker.egress import Egress
from atenet.worker.ingress import Incarnation, Ingress
from atenet.worker.network import NetworkPair, PairPool
from atenet.worker.probe import Probe, SocketMaker, plan_probes, wait_ready
from atenet.worker.sandbox import (
    Common,
    ContainerPlan,
    Exit,
    FreezeUnavailableError,
    Launch,
    Limits,
    MemoryNotSavedError,
    MemoryUnusableError,
    NotNowError,
    Sandbox,
    SandboxGroup,
    plan_containers,
    volume_directories,
)

__all__ = ["Order", "Parts", "StartAbortedError", "StartFailedError", "State", "Workload"]

_log = logging.getLogger(__name__)
_OVER_SECONDS = 1.0


class StartFailedError(AteError):
    """The actor ended before it was ready; its last lines are in the message."""


class StartAbortedError(AteError):
    """The worker stopped, or the actor was terminated, while it was starting."""


class State(enum.StrEnum):
    STARTING = "starting"
    READY = "ready"
    PAUSED = "paused"
    STOPPING = "stopping"
    EXITED = "exited"


@dataclass(frozen=True)
class Parts:
    """What a workload is made with. `stop_wait`: seconds between SIGTERM and SIGKILL."""

    networks: PairPool
    sandboxes: Mapping[str, Sandbox]  # by class
    ingress: Ingress
    egress: Egress
    make_socket: SocketMaker
    stop_wait: float


@dataclass(frozen=True)
class Order:
    """What to start, checked: making one is where a bad template is found out."""

    containers: tuple[ContainerPlan, ...]
    probes: tuple[Probe, ...]
    limits: Limits
    durable: tuple[Path, ...]
    logs: Path
    memory: Path | None = None  # to go on from
    roots: Mapping[str, str] | None = None  # of that memory
    newest: bool = False  # only if that is what a first start would be given
    golden: bool = False  # a first start for all: it is nobody, and nobody reaches it

    @classmethod
    def of(
        cls,
        template: ateapi_pb2.ActorTemplate,
        actor: Incarnation,
        actor_dir: Path,
        allowed_host_paths: tuple[Path, ...],
        common: Common = Common(),  # noqa: B008 - frozen
        *,
        memory: Path | None = None,
        roots: Mapping[str, str] | None = None,
        newest: bool = False,
        golden: bool = False,
    ) -> Order:
        """Raises InvalidTemplateError naming the field."""
        named = ateapi_pb2.ObjectRef(atespace=actor.atespace, name=actor.name)
        return cls(
            containers=plan_containers(template, named, actor_dir, allowed_host_paths, common),
            probes=plan_probes(template),
            limits=Limits.of(template),
            durable=tuple(volume_directories(template, actor_dir).values()),
            logs=actor_dir / "logs",
            memory=memory,
            roots=roots,
            newest=newest,
            golden=golden,
        )


class Workload:
    """Not safe for two callers at once: the supervisor holds the actor's lock around each call."""

    def __init__(
        self,
        actor: Incarnation,
        order: Order,
        sandbox: Sandbox,
        parts: Parts,
        on_exit: Callable[[Workload], None],
        *,
        gateway: str | None = None,
    ) -> None:
        """`gateway`: the egress gateway's host:port; None: the actor reaches nothing outside."""
        self.actor = actor
        self.state = State.STARTING
        self.timings = atelet_pb2.StartTimings()
        self.ended: Exit | None = None
        self._order = order
        self._sandbox = sandbox
        self._parts = parts
        self._on_exit = on_exit
        self._gateway = gateway
        self._network: NetworkPair | None = None
        self._group: SandboxGroup | None = None
        self._aborted = asyncio.Event()

    async def start(self) -> None:
        """Network, egress, sandbox, readiness, ingress, in this order: a booting actor may need to
        reach something, and nobody may reach it before it is ready. Raises AteError.

        Egress is opened beside the sandbox when that goes on from memory.

        Never cancelled: whoever wants it to end calls `abort`.
        """
        clock = _Clock()
        try:
            try:
                group, network = await self._begin(clock)
            except MemoryUnusableError as e:
                if self._aborted.is_set():
                    raise
                # A memory is given up once it has failed twice; the first may have been chance.
                _log.warning("a restore is tried again", extra={"error": e.message})
                await self.stop(grace=0, wait=0)
                self.state = State.STARTING
                group, network = await self._begin(clock)
            await self._until_ready(group, network)
            self.timings.ready_ms = clock.lap()
            await self._open(network)
            self.timings.activate_ms = clock.lap()
        except BaseException:
            await self.stop(grace=0, wait=0)
            raise
        self.state = State.READY
        group.exited.add_done_callback(self._note_exit)

    async def _begin(self, clock: _Clock) -> tuple[SandboxGroup, NetworkPair]:
        """Network, egress and sandbox. A network serves one sandbox, even one that failed."""
        network = self._network = await self._parts.networks.acquire()
        self.timings.network_ms = clock.lap()
        if self._order.memory is None:
            await self._open_egress(network)
            group = await self._start_sandbox(network)
        else:
            # What goes on has lost its connections anyway, and is not asked anything before both are done.
            opening, starting = await asyncio.gather(
                self._open_egress(network), self._start_sandbox(network), return_exceptions=True
            )
            if isinstance(opening, BaseException):
                raise opening
            if isinstance(starting, BaseException):
                raise starting
            group = starting
        clock.lap()
        return group, network

    async def _open_egress(self, network: NetworkPair) -> None:
        clock = _Clock()
        if not self._order.golden:  # who is nobody has no policy
            await self._parts.egress.open(self.actor, network.gateway_path, self._gateway)
        self.timings.egress_ms = clock.lap()

    async def _start_sandbox(self, network: NetworkPair) -> SandboxGroup:
        clock = _Clock()
        group = self._group = await self._sandbox.start(self._launch(network))
        self.timings.sandbox_ms = clock.lap()
        return group

    def abort(self) -> None:
        """Makes a start that waits for readiness give up. Harmless at any other time."""
        self._aborted.set()

    async def pause(self, grace: float) -> None:
        """Closes ingress (running tunnels have `grace` seconds) and freezes the actor.

        Raises FreezeUnavailableError, and then it is reachable and runs as before.
        """
        group, network = self._group, self._network
        assert group is not None
        assert network is not None
        # Asked first, so that nobody's connections are cut for nothing.
        await group.check_freezable()
        await self._parts.ingress.deactivate(self.actor, grace)
        try:
            await group.freeze()
        except BaseException:
            await self._open(network)
            raise
        self._parts.egress.hold(self.actor)
        self.state = State.PAUSED

    async def save(self, directory: Path, grace: float) -> None:
        """Pauses it and writes its memory into the empty directory.

        Raises MemoryNotSavedError, and then it is reachable and runs, and NotNowError: then it
        stands still, and saving it may be tried again.
        """
        group = self._group
        assert group is not None
        if self.state is State.READY:
            try:
                await self.pause(grace)
            except FreezeUnavailableError as e:
                raise MemoryNotSavedError(e.message, hint=e.hint) from e
        try:
            await group.save(directory)
        except BaseException as e:
            try:
                await self.thaw()
            except AteError as stuck:
                raise NotNowError(f"{e}; and it could not be let go on: {stuck.message}") from e
            raise

    async def thaw(self) -> None:
        """Lets it go on where it was, and opens ingress."""
        group, network = self._group, self._network
        assert group is not None
        assert network is not None
        await group.thaw()
        self._parts.egress.resume(self.actor)
        await self._open(network)
        self.state = State.READY

    async def stop(self, *, grace: float, wait: float | None = None) -> None:
        """Closes ingress (running tunnels have `grace` seconds), ends the actor, its egress and its
        network. What is left are its durable directories and logs. Repeatable."""
        self.state = State.STOPPING
        async with AsyncExitStack() as undo:
            if self._network is not None:
                undo.push_async_callback(self._parts.networks.release, self._network)
            # What it says while it stops may still go out.
            undo.push_async_callback(self._parts.egress.close, self.actor)
            if self._group is not None:
                last = self._parts.stop_wait if wait is None else wait
                undo.push_async_callback(self._group.stop, last)
            await self._parts.ingress.deactivate(self.actor, grace)
        self._group = self._network = None

    @property
    def golden(self) -> bool:
        """It is a first start of its template, under the actor's uid and in its slot."""
        return self._order.golden

    @property
    def roots(self) -> Mapping[str, str]:
        """By container, which root file system its memory is of."""
        return {} if self._group is None else self._group.roots

    @property
    def ended_by_itself(self) -> bool:
        """Also true before anybody had the time to clear up."""
        if self.state is State.EXITED:
            return True
        here = self.state in (State.READY, State.PAUSED)
        return here and self._group is not None and self._group.exited.done()

    async def is_over(self) -> bool:
        """After something failed: whether that is because it has ended, which may just be coming out."""
        if self._group is not None:
            await asyncio.wait([self._group.exited], timeout=_OVER_SECONDS)
        return self._group is None or self._group.exited.done()

    async def settle_exit(self) -> None:
        """After the actor ended by itself: nothing of it is reachable or running any more."""
        await self.stop(grace=0, wait=0)
        self.state = State.EXITED

    async def _open(self, network: NetworkPair) -> None:
        if not self._order.golden:
            await self._parts.ingress.activate(self.actor, network.gateway_path)

    def _launch(self, network: NetworkPair) -> Launch:
        order, actor = self._order, self.actor
        names = (actor.atespace, actor.name, actor.uid)
        known = ("", "", "") if order.golden else names
        return Launch(
            actor_name=self.actor.name,
            actor_uid=self.actor.uid,
            containers=order.containers,
            network=network,
            limits=order.limits,
            durable=order.durable,
            logs=order.logs,
            facts={
                "actor-id": "/".join(known[:2]) if known[0] else "",
                "atespace": known[0],
                "actor": known[1],
                "actor-uid": known[2],
            },
            memory=order.memory,
            roots=order.roots,
            newest=order.newest,
        )

    async def _until_ready(self, group: SandboxGroup, network: NetworkPair) -> None:
        """Whichever comes first: ready, a container's end, or `abort`."""
        ready: asyncio.Future[Any] = asyncio.ensure_future(
            wait_ready(self._order.probes, network.gateway_path, self._parts.make_socket)
        )
        aborted: asyncio.Future[Any] = asyncio.ensure_future(self._aborted.wait())
        try:
            first: tuple[asyncio.Future[Any], ...] = (ready, aborted, group.exited)
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if group.exited.done():
                raise StartFailedError(
                    f"{self.actor} ended during its start: {group.exited.result()}"
                )
            if not ready.done():
                raise StartAbortedError(f"the start of {self.actor} was given up")
            await ready
        finally:
            for task in (ready, aborted):
                task.cancel()
            await asyncio.gather(ready, aborted, return_exceptions=True)

    def _note_exit(self, exited: asyncio.Future[Exit]) -> None:
        # When we stopped it ourselves the state says so.
        if self.state in (State.READY, State.PAUSED):
            self.ended = exited.result()
            self._on_exit(self)


class _Clock:
    """Milliseconds between its laps."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        return passed * 1000
