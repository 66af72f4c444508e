"""What workers ask of the agent, and what reaches the control plane."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2 as node_pb
from atenet.proto import atelet_pb2_grpc as node_grpc

from tests.support.node import Node


@pytest.fixture
async def support(alone: Node) -> AsyncIterator[node_grpc.WorkerSupportStub]:
    async with grpc.aio.insecure_channel(f"unix:{alone.root / 'atelet.sock'}") as channel:
        yield node_grpc.WorkerSupportStub(channel)


def request(
    name: str = "w", epoch: int = 1, hosted: tuple[str, ...] = (), socket: Path | str = "/w.sock"
) -> node_pb.RegisterWorkerRequest:
    return node_pb.RegisterWorkerRequest(
        worker=pb.Worker(metadata=pb.ResourceMetadata(name=name), epoch=epoch, ips=["127.9.9.9"]),
        capacity=pb.WorkerResources(actors=3),
        hosted_actor_uids=hosted,
        socket_path=str(socket),
    )


async def refused(call, code: grpc.StatusCode) -> str:  # type: ignore[no-untyped-def]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is code
    return caught.value.details() or ""


async def test_a_registration_is_passed_on_with_the_nodes_part(
    alone: Node, support: node_grpc.WorkerSupportStub
) -> None:
    answer = await support.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
    seen = alone.registrar.last("w")
    assert answer.worker == seen.worker
    assert (seen.worker.node_name, seen.worker.node_endpoint) == ("node-1", alone.address)
    assert (seen.capacity.actors, list(seen.hosted_actor_uids)) == (3, ["uid-1"])
    assert list(seen.worker.ips) == ["127.9.9.9"]


@pytest.mark.parametrize("incomplete", [request(name=""), request(epoch=0), request(socket="")])
async def test_an_incomplete_registration_is_refused(
    support: node_grpc.WorkerSupportStub, incomplete: node_pb.RegisterWorkerRequest
) -> None:
    said = await refused(
        support.RegisterWorker(incomplete, timeout=10), grpc.StatusCode.INVALID_ARGUMENT
    )
    assert "worker.metadata.name" in said


async def test_an_earlier_incarnation_is_told_that_it_is_one(
    support: node_grpc.WorkerSupportStub,
) -> None:
    await support.RegisterWorker(request(epoch=2), timeout=10)
    said = await refused(
        support.RegisterWorker(request(epoch=1), timeout=10), grpc.StatusCode.FAILED_PRECONDITION
    )
    assert "later incarnation" in said


async def test_the_control_planes_refusal_reaches_the_worker(
    alone: Node, support: node_grpc.WorkerSupportStub
) -> None:
    alone.registrar.refuse = grpc.StatusCode.PERMISSION_DENIED
    said = await refused(
        support.RegisterWorker(request(), timeout=10), grpc.StatusCode.PERMISSION_DENIED
    )
    assert said == "control plane: as ordered"


async def test_nobody_asks_in_the_name_of_an_actor_that_is_not_here(
    support: node_grpc.WorkerSupportStub,
) -> None:
    await support.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
    for call in (
        support.MintActorCertificate(
            node_pb.MintActorCertificateRequest(actor_uid="uid-2"), timeout=10
        ),
        support.RequestActorSuspend(
            node_pb.RequestActorSuspendRequest(actor_uid="uid-2"), timeout=10
        ),
    ):
        said = await refused(call, grpc.StatusCode.PERMISSION_DENIED)
        assert "no worker of this node hosts actor 'uid-2'" in said


async def test_an_oversized_request_for_a_certificate_is_refused_here(
    support: node_grpc.WorkerSupportStub,
) -> None:
    await support.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
    oversized = node_pb.MintActorCertificateRequest(
        actor_uid="uid-1", certificate_signing_request=b"x" * 16385
    )
    said = await refused(
        support.MintActorCertificate(oversized, timeout=10), grpc.StatusCode.INVALID_ARGUMENT
    )
    assert "16384" in said


async def test_policies_are_asked_for_actors_that_are_here_only(
    alone: Node, support: node_grpc.WorkerSupportStub
) -> None:
    await support.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
    known = [
        pb.KnownEgressPolicy(actor=pb.ObjectRef(atespace="team", name="a"), actor_uid=uid)
        for uid in ("uid-1", "uid-2")
    ]
    asked = node_pb.GetActorEgressPoliciesRequest(known=known)
    answer = await support.GetActorEgressPolicies(asked, timeout=10)
    assert alone.registrar.asked_policies == known[:1]
    assert [(p.actor_uid, p.unchanged) for p in answer.present] == [("uid-1", True)]

    alone.registrar.refuse = grpc.StatusCode.UNAVAILABLE
    said = await refused(
        support.GetActorEgressPolicies(asked, timeout=10), grpc.StatusCode.UNAVAILABLE
    )
    assert said == "control plane: as ordered"


async def test_an_agent_that_has_just_started_does_not_deny_its_workers_actors(
    alone: Node, support: node_grpc.WorkerSupportStub
) -> None:
    """To a worker a denial is the last word: the actor would have no egress from then on."""
    await support.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
    assert alone.atelet is not None
    await alone.stop(alone.atelet)
    await alone.start_atelet()
    mint = node_pb.MintActorCertificateRequest(actor_uid="uid-1")
    async with grpc.aio.insecure_channel(f"unix:{alone.root / 'atelet.sock'}") as channel:
        fresh = node_grpc.WorkerSupportStub(channel)
        await refused(fresh.MintActorCertificate(mint, timeout=10), grpc.StatusCode.UNAVAILABLE)
        await fresh.RegisterWorker(request(hosted=("uid-1",)), timeout=10)
        other = node_pb.MintActorCertificateRequest(actor_uid="uid-2")
        await refused(
            fresh.MintActorCertificate(other, timeout=10), grpc.StatusCode.PERMISSION_DENIED
        )
