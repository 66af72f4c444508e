"""Pausing through the node agent, with real workers and real actors."""

from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2
from atenet.worker.sandbox import Freezer

from tests.support.actor_box import GET, ask, http_probe, processes_of, put, template
from tests.support.eventually import eventually, within
from tests.support.node import DATA, Node

UID = "0f0e0d0c-0000-4000-8000-000000000002"


def _served() -> pb.ActorTemplate:
    return template(probe=http_probe())


async def _code(call) -> grpc.StatusCode:  # type: ignore[no-untyped-def]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


async def test_a_paused_actor_keeps_its_processes_and_goes_on(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())
    gateway = await staffed.gateway("worker-1")
    before = processes_of(UID)
    for _ in range(2):
        await staffed.pause(handle)
    assert processes_of(UID) == before
    # Its kernel still takes connections for it, but nobody is there to answer.
    with pytest.raises(TimeoutError):
        await within(ask(gateway, GET), 0.2)
    for _ in range(2):
        await staffed.thaw(handle)
    assert (await ask(gateway, GET)).startswith(b"HTTP/1.1 200")
    assert processes_of(UID) == before


async def test_it_is_stored_and_ended_like_any_other(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())
    await ask(await staffed.gateway("worker-1"), put(b"remember"))
    await staffed.pause(handle)
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is False
    assert processes_of(UID) == []
    other = staffed.handle("worker-2", UID)
    await staffed.restore(other, _served(), uri)
    answer = await ask(await staffed.gateway("worker-2"), GET)
    assert answer.endswith(b"remember")
    await staffed.pause(other)
    await staffed.terminate(other)
    assert processes_of(UID) == []


async def test_strangers_and_other_epochs_are_told_apart(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    for call in (staffed.pause, staffed.thaw):
        assert await _code(call(handle)) is grpc.StatusCode.NOT_FOUND
    handle.worker_epoch += 1
    for call in (staffed.pause, staffed.thaw):
        assert await _code(call(handle)) is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_frozen_actor_of_a_worker_that_was_killed_is_stored(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())
    await ask(await staffed.gateway("worker-1"), put(b"remember"))
    await staffed.pause(handle)
    killed = staffed.workers["worker-1"]
    await staffed.kill(killed.process)
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is True
    assert processes_of(UID) == []
    await staffed.restore(staffed.handle("worker-2", UID), _served(), uri)
    assert (await ask(await staffed.gateway("worker-2"), GET)).endswith(b"remember")
    await staffed.restart(killed)  # clears up after itself


async def test_a_worker_that_stops_in_order_leaves_nobody_frozen(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())
    await staffed.pause(handle)
    worker = staffed.workers["worker-1"]
    assert await staffed.stop(worker.process) == 0
    assert processes_of(UID) == []
    parent = Freezer(worker.prefix)._hierarchy
    assert parent is not None
    assert not list(Path(parent, "atenet").glob(f"{worker.prefix}*"))


async def test_how_much_actors_are_used_reaches_the_control_plane(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())

    def told() -> list[tuple[str, bool]]:
        last = staffed.registrar.last("worker-1")
        return [(a.actor_uid, a.busy) for a in last.activity]

    await eventually(lambda: told() == [(UID, False)])
    await eventually(lambda: staffed.registrar.last("worker-1").activity[0].idle_ms > 0)
    await staffed.pause(handle)
    await eventually(lambda: told() == [])


async def test_only_an_idle_actor_is_stored_when_that_is_asked(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, _served())
    uri = staffed.uri(UID)
    request = atelet_pb2.CheckpointRequest(
        handle=handle, snapshot_uri=uri, content_scope=DATA, if_idle_ms=3_600_000
    )
    answer = await staffed.stub.Checkpoint(request, timeout=60)
    assert answer.in_use
    assert processes_of(UID)
    assert not Path(uri.removeprefix("file://")).exists()
    request.if_idle_ms = 1
    answer = await staffed.stub.Checkpoint(request, timeout=60)
    assert not answer.in_use
    assert Path(uri.removeprefix("file://")).exists()
    assert processes_of(UID) == []
