"""Passing faults of runsc and of the store: they cost neither an actor nor its memory."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

import grpc
import grpc.aio
import pytest
from atenet.atelet.files import ActorFiles
from atenet.atelet.golden import GoldenImages
from atenet.atelet.local import LocalSnapshots
from atenet.atelet.node import NodeAgent
from atenet.atelet.parts import Parts
from atenet.atelet.saving import KeptRunningError, let_go_on
from atenet.atelet.snapshot import SnapshotStore
from atenet.atelet.worker_calls import WorkerCallError
from atenet.atelet.workers import KnownWorker, Workers
from atenet.gvisor import MemoryNeeds, Runtime
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2
from atenet.snapshots.filesystem import FileObjects

from tests.support.failing_runsc import FailingRunsc
from tests.support.gvisor_box import count, counter_template
from tests.support.node import FULL, Node, node

UID = str(uuid4())


@pytest.fixture
def failing(tmp_path: Path) -> FailingRunsc:
    return FailingRunsc(tmp_path / "tools")


@pytest.fixture
async def staffed(root: None, tmp_path: Path, failing: FailingRunsc) -> AsyncIterator[Node]:
    async with node(tmp_path) as made:
        await made.start_worker("worker-1", "--sandbox", "gvisor", "--runsc", str(failing.program))
        yield made


async def test_an_actor_that_cannot_be_frozen_runs_on(staffed: Node, failing: FailingRunsc) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    assert await count(gateway) == "1"
    await count(gateway, "/write/data/file")
    failing.fail_once("pause")
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert "pause: as ordered" in answer.kept_running
    assert await count(gateway) == "2"
    assert await count(gateway, "/read/data/file") == "written"
    failing.fail_once("pause")
    with pytest.raises(grpc.aio.AioRpcError, match="pause: as ordered") as refused:
        await staffed.pause(handle)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert await count(gateway) == "3"
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert (answer.content_scope, answer.kept_running) == (FULL, "")


async def test_one_that_can_neither_be_saved_nor_let_go_on_is_asked_again(
    staffed: Node, failing: FailingRunsc
) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    assert await count(await staffed.gateway("worker-1")) == "1"
    failing.fail_once("checkpoint")
    failing.fail_once("resume")
    with pytest.raises(grpc.aio.AioRpcError, match="could not be let go on") as refused:
        await staffed.checkpoint_full(handle, uri, template)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert (answer.content_scope, answer.kept_running) == (FULL, "")
    await staffed.restore(handle, template, uri, FULL)
    assert await count(await staffed.gateway("worker-1")) == "2"
    await staffed.terminate(handle)


async def test_a_restore_that_fails_once_is_tried_again_on_a_fresh_network(
    staffed: Node, failing: FailingRunsc
) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    assert await count(await staffed.gateway("worker-1")) == "1"
    await staffed.checkpoint_full(handle, uri, template)
    failing.fail_once("restore")
    await staffed.restore(handle, template, uri, FULL)
    assert failing.failed("restore")
    assert await count(await staffed.gateway("worker-1")) == "2", "its memory went on"
    await staffed.terminate(handle)


class _BrokenStore(FileObjects):
    @contextmanager
    def writer(self, key: str) -> Iterator[IO[bytes]]:
        raise ValueError(f"{key} is not to its liking")
        yield


async def test_whatever_fails_while_storing_lets_the_actor_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def save(*_: object, **__: object) -> MemoryNeeds:
        return MemoryNeeds(Runtime("release-1", "x86_64", ()), {"main": "host:1"})

    async def thaw(worker: KnownWorker, handle: atelet_pb2.ActorHandle) -> None:
        told.append(handle.actor_uid)

    monkeypatch.setattr("atenet.atelet.storing.save", save)
    monkeypatch.setattr("atenet.atelet.saving.thaw_workload", thaw)
    files, workers = ActorFiles(tmp_path / "actors"), Workers(tmp_path / "w", silent_after=9)
    await workers.registered("worker-1", 1, str(tmp_path / "socket"), {UID})
    store = SnapshotStore(_BrokenStore(tmp_path / "store"))
    golden = GoldenImages(tmp_path / "golden")
    agent = NodeAgent(Parts(files, store, LocalSnapshots(files), golden, workers))
    files.prepare(UID, ["data"])
    handle = _handle()
    with pytest.raises(KeptRunningError, match="is not to its liking"):
        await agent.checkpoint(handle, f"file://{tmp_path}/store/team/{UID}/one", full=True)
    assert told == [UID]
    assert files.volumes(UID) is not None


async def test_one_that_still_stands_is_not_said_to_run_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def thaw(*_: object) -> None:
        raise WorkerCallError(grpc.StatusCode.INTERNAL, "no thaw today")

    monkeypatch.setattr("atenet.atelet.saving.thaw_workload", thaw)
    worker = KnownWorker("worker-1", 1, str(tmp_path / "socket"))
    with pytest.raises(WorkerCallError, match=r"disk full.*no thaw today") as caught:
        await let_go_on(worker, _handle(), OSError("disk full"))
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


def _handle() -> atelet_pb2.ActorHandle:
    named = pb.ObjectRef(atespace="team", name="agent")
    return atelet_pb2.ActorHandle(actor=named, actor_uid=UID, worker="worker-1", worker_epoch=1)
