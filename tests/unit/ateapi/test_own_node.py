"""A node's agent speaks for its own node: the certificate says which that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume
from tests.support.issue import odd_credential

_NAME = spiffe.pod_dns_name(spiffe.ATELET_ID)


@pytest.mark.conformance("C-01")
async def test_an_agent_cannot_touch_another_node_s_workers(plane: ControlPlane) -> None:
    await plane.seed("a")
    worker = await plane.register("worker-1", node="node-1")
    running = (await plane.control().ResumeActor(resume("a"))).actor
    other = plane.worker_service("node-2")
    uid = running.metadata.uid
    suspend = pb.RequestActorSuspendRequest(
        worker=pb.ObjectRef(name="worker-1"), actor=ref("a"), actor_uid=uid
    )
    for call in (
        # Its own words for another node's worker, and another node's worker moved to its own.
        other.RegisterWorker(plane.registration("worker-1", node="node-1", draining=True)),
        other.RegisterWorker(plane.registration("worker-9", node="node-1")),
        other.RequestActorSuspend(suspend),
    ):
        assert (await code_of(call))[0] == "PERMISSION_DENIED"
    moved = plane.registration("worker-1", node="node-2", epoch=9)
    assert (await code_of(other.RegisterWorker(moved)))[0] == "ALREADY_EXISTS"
    assert await plane.get("a") == running
    now = await plane.control().GetWorker(pb.GetWorkerRequest(worker=pb.ObjectRef(name="worker-1")))
    assert (now.epoch, now.node_name) == (worker.epoch, "node-1")
    await plane.worker_service("node-1").RequestActorSuspend(suspend)


async def test_a_dead_worker_s_actors_are_not_another_node_s(tmp_path: Path) -> None:
    async with control_plane(tmp_path, worker_timeout=0.2) as plane, plane.in_process():
        await plane.seed("a")
        await plane.register("worker-1", node="node-1")
        plane.atelet.always("Checkpoint", None)
        hold = plane.atelet.stall("Checkpoint")
        await plane.control().ResumeActor(resume("a"))
        await plane.atelet.arrived("Checkpoint")  # lost, and being recovered from its node
        moved = plane.registration("worker-1", node="node-2", epoch=2)
        call = plane.worker_service("node-2").RegisterWorker(moved)
        assert (await code_of(call))[0] == "ALREADY_EXISTS"
        hold()
        await plane.until("a", "SUSPENDED")


@pytest.mark.parametrize(
    "names",
    [
        [_NAME],
        [_NAME, f"node-1.{_NAME}", f"node-2.{_NAME}"],
        [_NAME, f"a..node-1.{_NAME}"],
        [_NAME, f"-.{_NAME}"],
        [_NAME, "node-1.atelet.ate-system.pod.cluster.example"],
        [f"node-1.{spiffe.pod_dns_name(spiffe.ROUTER_ID)}"],
    ],
)
async def test_an_agent_whose_certificate_names_no_one_node_is_refused(
    plane: ControlPlane, names: list[str]
) -> None:
    path = plane.identity.credential("odd", spiffe.ATELET_ID)
    authority = plane.identity.authority("pod-identity")
    odd_credential(path, authority, uris=[spiffe.ATELET_ID], dns=names)
    service = pb_grpc.WorkerServiceStub(plane.channel_with(path))
    code, message = await code_of(service.RegisterWorker(plane.registration()))
    assert code == "PERMISSION_DENIED"
    assert f"<node>.{_NAME}" in message


def test_a_node_s_name_is_read_back() -> None:
    name = spiffe.node_dns_name(spiffe.ATELET_ID, "node-1")
    assert name == "node-1.atelet.ate-system.pod.cluster.local"
    assert spiffe.parse_node_dns_name(spiffe.ATELET_ID, name) == "node-1"
    assert spiffe.parse_node_dns_name(spiffe.ROUTER_ID, name) is None
