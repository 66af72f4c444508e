"""The node agent with real workers and real actors."""

import asyncio
import signal
from pathlib import Path
from uuid import uuid4

import grpc
import grpc.aio
import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2

from tests.support.actor_box import GET, ask, http_probe, kill_actor, processes_of, put, template
from tests.support.deep_tree import nested
from tests.support.eventually import eventually, within
from tests.support.node import DATA, Node

# An actor's account follows from its uid: no other run on this machine has the same one.
UID = str(uuid4())


def served(**how) -> pb.ActorTemplate:  # type: ignore[no-untyped-def]
    return template(probe=http_probe(), **how)


async def say(node: Node, worker: str, body: bytes) -> None:
    assert (await ask(await node.gateway(worker), put(body))).startswith(b"HTTP/1.1 200")


async def heard(node: Node, worker: str) -> bytes:
    answer = await ask(await node.gateway(worker), GET)
    return answer.partition(b"\r\n\r\n")[2]


async def refused(call, code: grpc.StatusCode) -> str:  # type: ignore[no-untyped-def]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is code, caught.value.details()
    return caught.value.details() or ""


async def test_an_actor_moves_to_another_worker_with_its_files(staffed: Node) -> None:
    one, other = staffed.handle("worker-1", UID), staffed.handle("worker-2", UID)
    timings = await staffed.run(one, served())
    assert timings.ready_ms > 0
    await say(staffed, "worker-1", b"remember me")
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(one, uri) is False
    assert processes_of(UID) == []
    timings = await staffed.restore(other, served(), uri)
    assert timings.fetch_ms > 0
    assert await heard(staffed, "worker-2") == b"remember me"


async def test_a_repeated_call_changes_nothing(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"first life")
    before = processes_of(UID)
    await staffed.run(handle, served())
    assert processes_of(UID) == before
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is False
    assert await staffed.checkpoint(handle, uri) is False
    await staffed.restore(handle, served(), uri)
    await staffed.restore(handle, served(), uri)
    assert await heard(staffed, "worker-1") == b"first life"
    await staffed.terminate(handle)
    await staffed.terminate(handle)


async def test_files_that_a_killed_agent_left_after_storing_go_with_the_next_call(
    staffed: Node,
) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    uri = staffed.uri(UID)
    await staffed.checkpoint(handle, uri)
    volume = staffed.volume(UID)
    volume.mkdir(parents=True)
    (volume / "left").touch()
    await staffed.checkpoint(handle, uri)
    assert not volume.exists()
    # Of one that runs again a late call takes nothing.
    await staffed.restore(handle, served(), uri)
    await staffed.checkpoint(handle, uri)
    assert volume.exists()
    await say(staffed, "worker-1", b"still here")
    await staffed.terminate(handle)


async def test_a_snapshot_that_is_not_there_is_lost_data(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    uri = staffed.uri(UID)
    await staffed.checkpoint(handle, uri)
    (manifest,) = staffed.root.glob("snapshots/*/*/*/manifest.json")
    manifest.unlink()
    said = await refused(staffed.restore(handle, served(), uri), grpc.StatusCode.DATA_LOSS)
    assert "there is no snapshot" in said


async def test_the_same_snapshot_can_be_restored_twice(staffed: Node) -> None:
    """What the first restore did to the files is not in the second."""
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"as stored")
    uri = staffed.uri(UID)
    await staffed.checkpoint(handle, uri)
    await staffed.restore(handle, served(), uri)
    await say(staffed, "worker-1", b"later")
    await staffed.terminate(handle)
    await staffed.restore(handle, served(), uri)
    assert await heard(staffed, "worker-1") == b"as stored"


async def test_a_first_start_finds_empty_directories(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"of another life")
    await staffed.terminate(handle)
    await staffed.run(handle, served())
    assert await heard(staffed, "worker-1") == b"hello"


@pytest.mark.conformance("C-05")
async def test_a_killed_workers_actor_is_stored_from_disk(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"not lost")
    await staffed.kill(staffed.workers["worker-1"].process)
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is True
    assert processes_of(UID) == []
    await staffed.restore(staffed.handle("worker-2", UID), served(), uri)
    assert await heard(staffed, "worker-2") == b"not lost"
    await staffed.restart(staffed.workers["worker-1"])


@pytest.mark.conformance("C-05")
async def test_a_restarted_workers_actor_is_stored_from_disk(staffed: Node) -> None:
    worker = staffed.workers["worker-1"]
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"not lost")
    await staffed.kill(worker.process)
    await staffed.restart(worker)
    epochs = staffed.registrar.epochs("worker-1")
    assert epochs == sorted(set(epochs))
    assert len(epochs) == 2
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is True
    await staffed.restore(staffed.handle("worker-1", UID), served(), uri)
    assert await heard(staffed, "worker-1") == b"not lost"


async def test_a_hung_workers_actor_is_ended_over_its_head(alone: Node) -> None:
    worker = await alone.start_worker("worker-1")
    handle = alone.handle("worker-1", UID)
    await alone.run(handle, served())
    await say(alone, "worker-1", b"still here")
    worker.process.send_signal(signal.SIGSTOP)
    try:
        request = atelet_pb2.CheckpointRequest(handle=handle, snapshot_uri=alone.uri(UID, "s1"))
        answer = await alone.stub.Checkpoint(request, timeout=100)
        assert answer.found_stopped
        assert processes_of(UID) == []
    finally:
        worker.process.send_signal(signal.SIGCONT)
    await eventually(lambda: alone.registrar.last("worker-1").hosted_actor_uids == [])


async def test_an_actor_that_died_by_itself_is_found_stopped(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"last words")
    await eventually(lambda: UID in staffed.registrar.last("worker-1").hosted_actor_uids)
    kill_actor(UID)
    await eventually(lambda: UID not in staffed.registrar.last("worker-1").hosted_actor_uids)
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is True
    await staffed.restore(handle, served(), uri)
    assert await heard(staffed, "worker-1") == b"last words"


async def test_a_call_for_another_epoch_is_refused(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    handle.worker_epoch -= 1
    said = await refused(staffed.run(handle, served()), grpc.StatusCode.FAILED_PRECONDITION)
    assert "worker 'worker-1' is at epoch" in said
    handle.worker = "worker-9"
    said = await refused(staffed.run(handle, served()), grpc.StatusCode.FAILED_PRECONDITION)
    assert "unknown here" in said


@pytest.mark.conformance("T-06")
async def test_a_late_call_for_an_earlier_activation_touches_nothing(staffed: Node) -> None:
    early = staffed.handle("worker-1", UID)
    await staffed.run(early, served())
    uri = staffed.uri(UID)
    await staffed.checkpoint(early, uri)
    await staffed.restore(staffed.handle("worker-2", UID), served(), uri)
    await say(staffed, "worker-2", b"second life")
    for call in (staffed.terminate(early), staffed.checkpoint(early, staffed.uri(UID))):
        said = await refused(call, grpc.StatusCode.FAILED_PRECONDITION)
        assert "is on worker 'worker-2'" in said
    assert await heard(staffed, "worker-2") == b"second life"


async def test_nothing_is_stored_for_an_actor_that_never_was_here(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    said = await refused(staffed.checkpoint(handle, staffed.uri(UID)), grpc.StatusCode.NOT_FOUND)
    assert "nothing of actor" in said


async def test_a_damaged_snapshot_is_refused_and_nothing_runs(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    uri = staffed.uri(UID, "s1")
    await staffed.checkpoint(handle, uri)
    archive = staffed.root / "snapshots/team" / UID / "s1/data.tar.zst"
    archive.write_bytes(archive.read_bytes()[:-1])
    said = await refused(staffed.restore(handle, served(), uri), grpc.StatusCode.DATA_LOSS)
    assert "data.tar.zst is damaged" in said
    assert processes_of(UID) == []


async def test_a_start_that_fails_is_told_with_the_actors_words(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    bad = served()
    bad.containers[0].command[:] = ["sh", "-c", "echo no database >&2; exit 3"]
    said = await refused(staffed.run(handle, bad), grpc.StatusCode.INTERNAL)
    assert "exited with status 3" in said
    assert "no database" in said


async def test_terminate_does_not_wait_for_a_start_that_waits(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    never = template("sh", "-c", "while :; do sleep 1; done", probe=http_probe(seconds=600))
    starting = asyncio.ensure_future(staffed.run(handle, never))
    await eventually(lambda: processes_of(UID) != [])
    await within(staffed.terminate(handle), 30)
    assert "given up" in await refused(starting, grpc.StatusCode.UNAVAILABLE)
    assert processes_of(UID) == []
    assert not staffed.volume(UID).exists()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("volumes", lambda t: setattr(t.volumes[0], "name", "../up")),
        ("command", lambda t: t.containers[0].command.__delitem__(slice(None))),
        ("host_path", lambda t: setattr(t.volumes.add(name="h").host_path, "path", "/root")),
    ],
)
async def test_a_bad_template_is_the_callers_fault(staffed: Node, field: str, change) -> None:  # type: ignore[no-untyped-def]
    bad = served()
    change(bad)
    said = await refused(
        staffed.run(staffed.handle("worker-1", UID), bad), grpc.StatusCode.INVALID_ARGUMENT
    )
    assert field in said


async def test_a_full_worker_says_so(alone: Node) -> None:
    await alone.start_worker("worker-1", slots=1)
    await alone.run(alone.handle("worker-1", UID), served())
    other = alone.handle("worker-1", "other-uid", name="other")
    await refused(alone.run(other, served()), grpc.StatusCode.RESOURCE_EXHAUSTED)


@pytest.mark.parametrize(
    "caller",
    [spiffe.ROUTER_ID, spiffe.ATELET_ID, spiffe.CLI_ID, spiffe.pod_id("default", "local")],
)
async def test_only_the_control_plane_may_call(alone: Node, caller: str) -> None:
    request = atelet_pb2.TerminateRequest()
    said = await refused(
        alone.client(caller).Terminate(request, timeout=10), grpc.StatusCode.PERMISSION_DENIED
    )
    assert "only the control plane" in said


async def test_an_incomplete_handle_is_named(alone: Node) -> None:
    handle = atelet_pb2.ActorHandle(actor=pb.ObjectRef(atespace="team", name="agent"))
    said = await refused(alone.terminate(handle), grpc.StatusCode.INVALID_ARGUMENT)
    assert "handle.actor_uid is empty" in said


async def test_a_restarted_agent_goes_on_where_it_was(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"meanwhile")
    assert staffed.atelet is not None
    await staffed.kill(staffed.atelet)
    await staffed.start_atelet()
    # At once: the worker need not have spoken up again.
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is False
    seen = len(staffed.registrar.seen["worker-1"])
    await eventually(lambda: len(staffed.registrar.seen["worker-1"]) > seen)
    await staffed.restore(handle, served(), uri)
    assert await heard(staffed, "worker-1") == b"meanwhile"


async def test_an_agent_and_worker_that_both_died_lose_nothing(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    await say(staffed, "worker-1", b"on disk")
    assert staffed.atelet is not None
    await asyncio.gather(
        staffed.kill(staffed.atelet), staffed.kill(staffed.workers["worker-1"].process)
    )
    await staffed.start_atelet()
    uri = staffed.uri(UID)
    assert await staffed.checkpoint(handle, uri) is True
    await staffed.restore(staffed.handle("worker-2", UID), served(), uri)
    assert await heard(staffed, "worker-2") == b"on disk"
    await staffed.restart(staffed.workers["worker-1"])


async def test_stopping_the_agent_leaves_actors_running(staffed: Node) -> None:
    await staffed.run(staffed.handle("worker-1", UID), served())
    assert staffed.atelet is not None
    assert await staffed.stop(staffed.atelet) == 0
    assert processes_of(UID) != []
    await staffed.start_atelet()


async def test_one_whose_directories_no_snapshot_holds_runs_on(staffed: Node) -> None:
    handle, uri = staffed.handle("worker-1", UID), staffed.uri(UID)
    await staffed.run(handle, served())
    before = processes_of(UID)
    nested(staffed.volume(UID), 2001)
    request = atelet_pb2.CheckpointRequest(handle=handle, snapshot_uri=uri, content_scope=DATA)
    answer = await staffed.stub.Checkpoint(request, timeout=60)
    assert "volume data: directories are nested more than 2000 deep" in answer.kept_running
    assert processes_of(UID) == before
    assert not Path(uri.removeprefix("file://")).exists()
    # What has ended cannot go on; whoever asks is told why.
    await staffed.kill(staffed.workers["worker-1"].process)
    with pytest.raises(grpc.aio.AioRpcError, match="nested more than 2000 deep") as refused:
        await staffed.stub.Checkpoint(request, timeout=60)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await staffed.restart(staffed.workers["worker-1"])
    await staffed.terminate(staffed.handle("worker-1", UID))
    assert not staffed.volume(UID).exists()


async def test_an_actor_with_deep_directories_is_stored_started_and_ended(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, served())
    nested(staffed.volume(UID))
    uri = staffed.uri(UID)
    await staffed.checkpoint(handle, uri)
    assert not staffed.volume(UID).exists()
    await staffed.restore(handle, served(), uri)
    assert (staffed.volume(UID) / "/".join(["d"] * 1000)).is_dir()
    await staffed.terminate(handle)
    assert not staffed.volume(UID).exists()
