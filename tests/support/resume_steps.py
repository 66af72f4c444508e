"""What a scripted control plane answers to ResumeActor, one step a call."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import grpc
from atenet.proto import ateapi_pb2 as pb

from tests.support import pki


@dataclass(frozen=True)
class Placement:
    """One activation of an actor on a worker, as an assignment tells it."""

    actor: str
    worker_ip: str
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    version: int = 1
    epoch: int = 1
    # None: the assignment names no ID, so that readers derive it from namespace and pool.
    spiffe_id: str | None = pki.WORKER_ID
    namespace: str = "default"
    pool: str = "local"

    def moved(self, worker_ip: str) -> "Placement":
        """The same actor, resumed elsewhere."""
        return replace(self, worker_ip=worker_ip, version=self.version + 2)

    def resumed_here(self) -> "Placement":
        """The same actor, suspended and resumed on the worker it was on."""
        return self.moved(self.worker_ip)

    def message(self) -> pb.Actor:
        atespace, name = self.actor.split("/")
        assignment = pb.WorkerAssignment(
            worker_namespace=self.namespace,
            worker_pool=self.pool,
            worker_pod=f"worker-{self.worker_ip}",
            worker_pod_uid=self.worker_ip,
            worker_pod_ips=[self.worker_ip],
            worker=pb.ObjectRef(name=f"worker-{self.worker_ip.replace('.', '-')}"),
            node_name="node-1",
            worker_epoch=self.epoch,
            worker_spiffe_id=self.spiffe_id or "",
        )
        return pb.Actor(
            metadata=pb.ResourceMetadata(
                atespace=atespace, name=name, uid=self.uid, version=self.version
            ),
            status=pb.ActorStatus(state=pb.ACTOR_STATE_RUNNING, worker_assignment=assignment),
        )


class ResumeFailedError(Exception):
    """A step's refusal: becomes the RPC's status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


Step = Callable[[], Awaitable[pb.ResumeActorResponse]]


def running(place: Placement) -> Step:
    """The actor runs: a warm read."""

    async def step() -> pb.ResumeActorResponse:
        return pb.ResumeActorResponse(actor=place.message(), resumed=False)

    return step


def resumed(place: Placement, *, after: float = 0.0) -> Step:
    """The call ran the workflow, which took `after` seconds."""

    async def step() -> pb.ResumeActorResponse:
        await asyncio.sleep(after)
        return pb.ResumeActorResponse(actor=place.message(), resumed=True)

    return step


def failure(
    code: grpc.StatusCode, text: str = "scripted: 10.9.8.7 said no", *, after: float = 0.0
) -> Step:
    """Refuses. The text carries an internal address, so that a test sees whether it leaks."""

    async def step() -> pb.ResumeActorResponse:
        await asyncio.sleep(after)
        raise ResumeFailedError(code, text)

    return step


def no_room() -> Step:
    return failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "no free workers available")


def gated(gate: asyncio.Event, then: Step) -> Step:
    """Holds the call in the air until the test opens the gate."""

    async def step() -> pb.ResumeActorResponse:
        await gate.wait()
        return await then()

    return step
