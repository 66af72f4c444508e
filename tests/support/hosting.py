"""A supervisor with everything real but atunnel, whose calls are recorded and may be told to fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from atenet._engine import socket_in_netns
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.ingress import Activity, Incarnation
from atenet.worker.supervisor import Supervisor
from atenet.worker.workload import Parts

from tests.support.actor_box import ActorBox, actor_directory


@dataclass
class RecordedIngress:
    """`open`: gateway by actor, as a router would find it; `events`: what happened in order."""

    open: dict[Incarnation, Path] = field(default_factory=dict)
    events: list[tuple[str, str, float]] = field(default_factory=list)
    fail_activation: bool = False
    # Set while a deactivation with grace is under way; it ends when `let_go` is set.
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    hold: bool = False
    in_use: bool = False

    async def activate(self, actor: Incarnation, gateway: Path) -> None:
        if self.fail_activation:
            raise AteError("activation fails as ordered")
        self.events.append(("activate", actor.uid, 0))
        self.open[actor] = gateway

    async def close_if_idle(self, actor: Incarnation, seconds: float) -> bool:
        self.events.append(("close_if_idle", actor.uid, seconds))
        if self.in_use:
            return False
        self.open.pop(actor, None)
        return True

    async def activity(self) -> list[Activity]:
        return [Activity(actor.uid, self.in_use, 0) for actor in self.open]

    async def deactivate(self, actor: Incarnation, grace: float) -> None:
        if self.open.pop(actor, None) is None:
            return
        self.events.append(("deactivate", actor.uid, grace))
        if self.hold and grace:
            self.closing.set()
            await self.let_go.wait()


@dataclass
class RecordedEgress:
    """`open`: the gateway's address by actor; `events`: what happened in order."""

    open_now: dict[Incarnation, str | None] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)
    fail_opening: AteError | None = None

    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        assert gateway_namespace.exists()
        if self.fail_opening is not None:
            raise self.fail_opening
        self.events.append(("open", actor.uid))
        self.open_now[actor] = gateway

    def hold(self, actor: Incarnation) -> None:
        self.events.append(("hold", actor.uid))

    def resume(self, actor: Incarnation) -> None:
        self.events.append(("resume", actor.uid))

    async def close(self, actor: Incarnation) -> None:
        if actor in self.open_now:
            del self.open_now[actor]
            self.events.append(("close", actor.uid))


@dataclass
class Hosting:
    box: ActorBox
    ingress: RecordedIngress
    egress: RecordedEgress
    supervisor: Supervisor
    changes: list[list[str]]

    async def run(self, actor: Incarnation, template: pb.ActorTemplate):  # type: ignore[no-untyped-def]
        return await self.supervisor.run(actor, template, self.directory(actor))

    def directory(self, actor: Incarnation) -> Path:
        return actor_directory(self.box.where, actor.uid)

    def gateway(self, actor: Incarnation) -> Path:
        return self.ingress.open[actor]


@asynccontextmanager
async def hosting(box: ActorBox, *, slots: int = 4, grace: float = 5.0) -> AsyncIterator[Hosting]:
    ingress = RecordedIngress()
    egress = RecordedEgress()
    changes: list[list[str]] = []
    supervisor = Supervisor(
        Parts(
            networks=box.networks,
            sandboxes={"process": box.sandbox},
            ingress=ingress,
            egress=egress,
            make_socket=socket_in_netns,
            stop_wait=1.0,
        ),
        slots=slots,
        suspend_grace=grace,
        changed=lambda: changes.append(supervisor.hosted()),
    )
    try:
        yield Hosting(box, ingress, egress, supervisor, changes)
    finally:
        ingress.let_go.set()
        await supervisor.close()
