"""Hosts actors: who is here, in which state, and one operation at a time for each."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.gvisor import Runtime, RuntimeMismatchError
from atenet.operations import Operations
from atenet.proto import ateapi_pb2, atelet_pb2
from atenet.worker.ingress import Activity, Incarnation
from atenet.worker.sandbox import (
    DEFAULT_CLASS,
    Common,
    InvalidTemplateError,
    MemoryUnusableError,
    Sandbox,
)
from atenet.worker.workload import Order, Parts, State, Workload

__all__ = ["Checkpoint", "DrainingError", "FullError", "Memory", "NotHostedError", "Supervisor"]

_log = logging.getLogger(__name__)


class FullError(AteError):
    """Every slot is taken."""


class DrainingError(AteError):
    """The worker is stopping and takes no new actors."""


class NotHostedError(AteError):
    """No actor with this uid is here."""


@dataclass(frozen=True)
class Memory:
    """What an earlier activation's `save` wrote, and what it ran on. `newest`: it is good only while
    a first start would be given the same root file systems."""

    directory: Path
    runtime: Runtime
    roots: Mapping[str, str] | None = None
    newest: bool = False


class Checkpoint(enum.Enum):
    """What became of one."""

    STOPPED = "stopped"
    SAVED = "saved"  # it stands still, its memory written
    FOUND_STOPPED = "found stopped"  # it had ended by itself
    IN_USE = "in use"  # nothing was done


class Supervisor:
    """`slots`: how many actors at most; one that is ending still counts.

    `changed` is called when an actor has ended by itself, so that the control plane hears of it.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        slots: int,
        suspend_grace: float,
        allowed_host_paths: tuple[Path, ...] = (),
        common: Common = Common(),  # noqa: B008 - frozen
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.slots = slots
        self._parts = parts
        self._grace = suspend_grace
        self._allowed = allowed_host_paths
        self._common = common
        self._changed = changed
        self._workloads: dict[str, Workload] = {}
        self._operations = Operations()
        self._draining = False

    async def run(
        self,
        actor: Incarnation,
        template: ateapi_pb2.ActorTemplate,
        actor_dir: Path,
        memory: Memory | None = None,
        *,
        golden: bool = False,
        gateway: str | None = None,
    ) -> atelet_pb2.StartTimings:
        """Starts the actor and opens its ingress; an actor that is here already is left alone.

        `memory`: it goes on from there; `golden`: it gets neither name nor ingress, nor egress;
        `gateway`: the egress gateway's host:port, None: it reaches nothing outside. Raises AteError:
        InvalidTemplateError, FullError, DrainingError, MemoryUnusableError, or why it did not start.
        """
        return await self._operations.detached(
            self._run(actor, template, actor_dir, memory, golden=golden, gateway=gateway)
        )

    async def checkpoint(
        self, actor: Incarnation, *, if_idle: float = 0.0, memory: Path | None = None
    ) -> Checkpoint:
        """Stops it with grace; its durable directories then hold what a snapshot will hold.

        With `memory` it is not stopped but stands still, its memory in that directory, until it is
        terminated or thawed. `if_idle`: seconds for which nobody must have used it; it is left alone
        otherwise. Raises NotHostedError, and MemoryNotSavedError: then it runs on.
        """
        return await self._operations.detached(self._checkpoint(actor, if_idle, memory))

    @property
    def runtime(self) -> Runtime | None:
        """What saved memory depends on here; None when no class keeps any."""
        return next((s.runtime for s in self._parts.sandboxes.values() if s.runtime), None)

    async def pause(self, actor: Incarnation) -> None:
        """Closes ingress with grace and freezes it; repeatable.

        Raises NotHostedError, and FreezeUnavailableError: then it goes on as before.
        """
        await self._operations.detached(self._pause(actor))

    async def thaw(self, actor: Incarnation) -> None:
        """Undoes it; repeatable. Raises NotHostedError."""
        await self._operations.detached(self._thaw(actor))

    async def terminate(self, actor: Incarnation) -> None:
        """Stops it without grace, wherever it stands. Succeeds when it is not here."""
        if (workload := self._workloads.get(actor.uid)) is not None:
            workload.abort()
        await self._operations.detached(self._terminate(actor))

    def workloads(self) -> list[Workload]:
        return list(self._workloads.values())

    def roots(self, actor: Incarnation) -> Mapping[str, str]:
        """By container, which root file system the memory of a hosted actor is of."""
        workload = self._workloads.get(actor.uid)
        return {} if workload is None else workload.roots

    def hosted(self) -> list[str]:
        """Uids of the actors that live here; one that ended by itself does not."""
        return [uid for uid, w in self._workloads.items() if w.state is not State.EXITED]

    async def activity(self) -> list[Activity]:
        """How much the actors are used whose ingress is open."""
        return await self._parts.ingress.activity()

    @property
    def draining(self) -> bool:
        return self._draining

    async def close(self) -> None:
        """Takes nothing new, gives up starts, stops every actor with grace. Files stay."""
        self._draining = True
        self._changed()
        for workload in self.workloads():
            workload.abort()
        ending = [self._end(workload) for workload in self.workloads()]
        for result in await asyncio.gather(*ending, return_exceptions=True):
            if isinstance(result, BaseException):
                _log.error("an actor could not be stopped in order", exc_info=result)
        await self._operations.settled()

    async def _run(
        self,
        actor: Incarnation,
        template: ateapi_pb2.ActorTemplate,
        actor_dir: Path,
        memory: Memory | None,
        *,
        golden: bool,
        gateway: str | None,
    ) -> atelet_pb2.StartTimings:
        async with self._operations.lock(actor.uid):
            here = self._workloads.get(actor.uid)
            if here is not None and here.state is State.READY:
                return here.timings
            if self._draining:
                raise DrainingError("the worker is stopping")
            sandbox = self._sandbox_for(template, memory)
            directory = None if memory is None else _usable(memory, sandbox)
            order = Order.of(
                template,
                actor,
                actor_dir,
                self._allowed,
                self._common,
                memory=directory,
                roots=None if memory is None else memory.roots,
                newest=memory is not None and memory.newest,
                golden=golden,
            )
            if here is not None and here.state is not State.EXITED:
                await here.stop(grace=0)  # an earlier stop failed half-way
            if here is None and len(self._workloads) >= self.slots:
                raise FullError(f"all {self.slots} slots of this worker are taken")
            workload = Workload(actor, order, sandbox, self._parts, self._on_exit, gateway=gateway)
            self._workloads[actor.uid] = workload
            try:
                await workload.start()
            except BaseException:
                del self._workloads[actor.uid]
                raise
            _log.info("actor started", extra=_fields(actor) | _milliseconds(workload.timings))
            return workload.timings

    def _sandbox_for(self, template: ateapi_pb2.ActorTemplate, memory: Memory | None) -> Sandbox:
        wanted = template.sandbox_config.sandbox_class or DEFAULT_CLASS
        sandbox = self._parts.sandboxes.get(wanted)
        if sandbox is None:
            raise InvalidTemplateError(
                f"template.sandbox_config.sandbox_class {wanted!r} is not offered by this worker",
                hint=f"it has: {', '.join(sorted(self._parts.sandboxes))}",
            )
        sandbox.check(template, memory.roots if memory is not None else None)
        return sandbox

    async def _checkpoint(
        self, actor: Incarnation, if_idle: float, memory: Path | None
    ) -> Checkpoint:
        async with self._operations.lock(actor.uid):
            workload = self._workloads.get(actor.uid)
            if workload is None:
                raise _not_hosted(actor)
            ended_by_itself = workload.ended_by_itself
            asked = if_idle and workload.state is State.READY and not ended_by_itself
            if asked and not await self._parts.ingress.close_if_idle(actor, if_idle):
                return Checkpoint.IN_USE
            if memory is not None and not ended_by_itself:
                try:
                    await workload.save(memory, self._grace)
                except AteError as e:
                    # Its memory went with it; its files are what there is to store.
                    ended_by_itself = await workload.is_over()
                    if not ended_by_itself:
                        raise
                    _log.warning("actor ended", extra=_fields(actor) | {"error": e.message})
                else:
                    _log.info("actor saved", extra=_fields(actor))
                    return Checkpoint.SAVED
            if workload.state is not State.EXITED:
                await workload.stop(grace=0 if ended_by_itself else self._grace)
            self._forget(workload)
            return Checkpoint.FOUND_STOPPED if ended_by_itself else Checkpoint.STOPPED

    async def _pause(self, actor: Incarnation) -> None:
        async with self._operations.lock(actor.uid):
            workload = self._living(actor)
            if workload.state is State.READY:
                await workload.pause(self._grace)
                _log.info("actor paused", extra=_fields(actor))

    async def _thaw(self, actor: Incarnation) -> None:
        async with self._operations.lock(actor.uid):
            workload = self._living(actor)
            if workload.state is State.PAUSED:
                await workload.thaw()
                _log.info("actor thawed", extra=_fields(actor))

    def _living(self, actor: Incarnation) -> Workload:
        workload = self._workloads.get(actor.uid)
        if workload is None or workload.ended_by_itself:
            raise _not_hosted(actor)
        return workload

    def _forget(self, workload: Workload) -> None:
        del self._workloads[workload.actor.uid]
        _log.info("actor left", extra=_fields(workload.actor))

    async def _terminate(self, actor: Incarnation) -> None:
        async with self._taken(actor.uid) as workload:
            if workload is not None and workload.state is not State.EXITED:
                await workload.stop(grace=0)

    async def _end(self, workload: Workload) -> None:
        async with self._taken(workload.actor.uid) as here:
            if here is workload and workload.state is not State.EXITED:
                await workload.stop(grace=self._grace)

    @asynccontextmanager
    async def _taken(self, uid: str) -> AsyncIterator[Workload | None]:
        """The workload under its lock; it is forgotten unless the body fails."""
        async with self._operations.lock(uid):
            workload = self._workloads.get(uid)
            yield workload
            if workload is not None:
                self._forget(workload)

    def _on_exit(self, workload: Workload) -> None:
        self._operations.spawn(self._settle(workload))

    async def _settle(self, workload: Workload) -> None:
        async with self._operations.lock(workload.actor.uid):
            if self._workloads.get(workload.actor.uid) is workload:
                _log.warning(
                    "actor ended by itself",
                    extra=_fields(workload.actor) | {"exit": str(workload.ended)},
                )
                await workload.settle_exit()
        self._changed()


def _usable(memory: Memory, sandbox: Sandbox) -> Path:
    """Its directory. Raises MemoryUnusableError."""
    if sandbox.runtime is None:
        raise MemoryUnusableError(f"the {sandbox.sandbox_class} class keeps no memory")
    try:
        sandbox.runtime.check(memory.runtime)
    except RuntimeMismatchError as e:
        raise MemoryUnusableError(e.message, hint=e.hint) from e
    return memory.directory


def _not_hosted(actor: Incarnation) -> NotHostedError:
    return NotHostedError(f"{actor} ({actor.uid}) is not on this worker")


def _fields(actor: Incarnation) -> dict[str, Any]:
    return {"atespace": actor.atespace, "actor": actor.name, "actor_uid": actor.uid}


def _milliseconds(timings: atelet_pb2.StartTimings) -> dict[str, Any]:
    return {field.name: round(value, 1) for field, value in timings.ListFields()}
