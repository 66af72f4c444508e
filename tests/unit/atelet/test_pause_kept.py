"""A pause keeps memory and files on the node and frees the slot: with real sandboxes of runsc."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.worker.sandbox.gvisor.runsc import processes

from tests.support.eventually import eventually
from tests.support.failing_runsc import FailingRunsc
from tests.support.gvisor_box import count, counter_template
from tests.support.node import FULL, Node, node

UID = "0f0e0d0c-0000-4000-8000-000000000301"
TEMPLATE = counter_template()


@pytest.fixture
def failing(tmp_path: Path) -> FailingRunsc:
    return FailingRunsc(tmp_path / "tools")


@pytest.fixture
async def staffed(root: None, tmp_path: Path, failing: FailingRunsc) -> AsyncIterator[Node]:
    """Two workers of the gvisor class."""
    async with node(tmp_path) as made:
        for name in ("worker-1", "worker-2"):
            await made.start_worker(name, "--sandbox", "gvisor", "--runsc", str(failing.program))
        yield made


def _mine(uid: str = UID) -> list[int]:
    return list(processes(lambda words: any(word.startswith(f"{uid}.") for word in words)))


def _kept(node: Node) -> Path:
    return node.root / "node" / "actors" / UID / "paused"


async def _counted_and_paused(node: Node) -> None:
    """On worker-1, at 1 and with a file."""
    handle = node.handle("worker-1", UID)
    await node.run(handle, TEMPLATE)
    gateway = await node.gateway("worker-1")
    assert await count(gateway) == "1"
    await count(gateway, "/write/data/file")
    answer = await node.pause_kept(handle, TEMPLATE)
    assert (answer.stored, answer.kept_running) == (True, "")
    assert _mine() == []


def _told(node: Node) -> set[tuple[str, str]]:
    """What the agent has told the control plane that it keeps."""
    said = [request for seen in node.registrar.seen.values() for request in seen]
    return {(h.actor_uid, h.snapshot_name) for request in said for h in request.held_snapshots}


async def _error(call) -> grpc.aio.AioRpcError:  # type: ignore[no-untyped-def]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_it_goes_on_on_another_worker_of_the_node_and_nothing_is_copied(
    staffed: Node,
) -> None:
    await _counted_and_paused(staffed)
    memory = (_kept(staffed) / "memory" / "pages.img").stat()
    file = (staffed.volume(UID) / "file").stat()
    await staffed.restore_kept(staffed.handle("worker-2", UID), TEMPLATE)
    gateway = await staffed.gateway("worker-2")
    assert await count(gateway) == "2"
    assert await count(gateway, "/read/data/file") == "written"
    assert (staffed.volume(UID) / "file").stat().st_ino == file.st_ino
    assert memory.st_size > 0
    assert not _kept(staffed).exists(), "it runs: what was kept is of the past"
    assert list((staffed.root / "snapshots").iterdir()) == []


async def test_a_suspend_stores_what_was_kept(staffed: Node) -> None:
    await _counted_and_paused(staffed)
    uri = staffed.uri(UID)
    for _ in range(2):
        answer = await staffed.store_kept(UID, uri)
        assert answer.content_scope == FULL
        assert not _kept(staffed).exists()
        assert not staffed.volume(UID).exists()
    await staffed.restore(staffed.handle("worker-2", UID), TEMPLATE, uri, FULL)
    assert await count(await staffed.gateway("worker-2")) == "2"


async def test_an_agent_that_is_killed_when_it_was_kept_ends_it_when_asked_again(
    staffed: Node,
) -> None:
    await _counted_and_paused(staffed)
    handle = staffed.handle("worker-1", UID)
    kept, aside = _kept(staffed), staffed.root / "aside"
    await asyncio.to_thread(subprocess.run, ["cp", "-a", kept, aside], check=True)
    await staffed.restore_kept(handle, TEMPLATE)
    await staffed.pause(handle)  # as it stands when its memory has been kept
    aside.rename(kept)
    assert staffed.atelet is not None
    await staffed.kill(staffed.atelet)
    await staffed.start_atelet()
    await eventually(lambda: _told(staffed) == {(UID, "nap")})
    seen = len(staffed.registrar.seen["worker-1"])
    await eventually(lambda: len(staffed.registrar.seen["worker-1"]) > seen)
    assert _mine() != []
    assert (await staffed.pause_kept(handle, TEMPLATE)).stored
    assert _mine() == []


async def test_an_agent_that_is_killed_while_it_keeps_it_does_so_when_asked_again(
    staffed: Node,
) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, TEMPLATE)
    assert await count(await staffed.gateway("worker-1")) == "1"
    half = staffed.root / "node" / "actors" / UID / "paused.making"
    (half / "memory").mkdir(parents=True)
    (half / "memory" / "pages.img").write_bytes(b"half")
    assert (await staffed.pause_kept(handle, TEMPLATE)).stored
    assert not half.exists()
    await staffed.restore_kept(staffed.handle("worker-2", UID), TEMPLATE)
    assert await count(await staffed.gateway("worker-2")) == "2"


def _alter(kept: Path) -> None:
    (kept / "memory" / "pages.img").write_bytes(b"other")


def _remove(kept: Path) -> None:
    (kept / "memory" / "checkpoint.img").unlink()


def _touch_a_file(kept: Path) -> None:
    (kept.with_name("volumes") / "data" / "file").write_bytes(b"changed")


def _damage(kept: Path) -> None:
    (kept / "local.json").write_bytes(b"{}")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_alter, "pages.img has 5 bytes"),
        (_remove, "checkpoint.img: missing or too many"),
        (_touch_a_file, "its durable directories were changed after it was paused"),
        (_damage, "does not have the paused actor's memory nap any more"),
    ],
)
async def test_what_is_not_as_it_was_kept_is_refused_with_the_reason(
    staffed: Node, spoil, reason: str
) -> None:
    await _counted_and_paused(staffed)
    spoil(_kept(staffed))
    refused = await _error(staffed.restore_kept(staffed.handle("worker-1", UID), TEMPLATE))
    assert refused.code() is grpc.StatusCode.DATA_LOSS
    assert reason in (refused.details() or "")
    assert _mine() == []
    await staffed.forget_kept(UID)
    assert not _kept(staffed).exists()


async def test_a_start_that_fails_leaves_it_to_be_tried_again(
    staffed: Node, failing: FailingRunsc
) -> None:
    await _counted_and_paused(staffed)
    handle = staffed.handle("worker-2", UID)
    failing.fail_once("restore")
    await staffed.restore_kept(handle, TEMPLATE)
    assert failing.failed("restore")
    assert await count(await staffed.gateway("worker-2")) == "2"
    await staffed.terminate(handle)
    await _counted_and_paused(staffed)
    await staffed.kill(staffed.workers["worker-2"].process)
    assert (await _error(staffed.restore_kept(handle, TEMPLATE))).code() is (
        grpc.StatusCode.UNAVAILABLE
    )
    assert _kept(staffed).exists()
    await staffed.restart(staffed.workers["worker-2"])
    await staffed.restore_kept(staffed.handle("worker-1", UID), TEMPLATE)
    assert await count(await staffed.gateway("worker-1")) == "2"


async def test_it_is_forgotten_with_its_files_and_only_under_its_name(staffed: Node) -> None:
    await _counted_and_paused(staffed)
    await staffed.forget_kept(UID, "another")
    assert _kept(staffed).exists()
    await staffed.forget_kept(UID)
    assert not _kept(staffed).exists()
    assert not staffed.volume(UID).exists()
    await staffed.forget_kept(UID)


async def test_what_runs_is_not_forgotten_for_a_pause_of_the_past(staffed: Node) -> None:
    await _counted_and_paused(staffed)
    await staffed.restore_kept(staffed.handle("worker-2", UID), TEMPLATE)
    await staffed.forget_kept(UID)
    gateway = await staffed.gateway("worker-2")
    assert await count(gateway, "/read/data/file") == "written"


async def test_without_room_for_it_the_actor_runs_on(root: None, tmp_path: Path) -> None:
    async with node(tmp_path, "--paused-bytes", "1000000") as made:
        await made.start_worker("worker-1", "--sandbox", "gvisor")
        handle = made.handle("worker-1", UID)
        await made.run(handle, TEMPLATE)
        gateway = await made.gateway("worker-1")
        assert await count(gateway) == "1"
        answer = await made.pause_kept(handle, TEMPLATE)
        assert not answer.stored
        assert "paused actors take 0 bytes on this node, 1000000 are the limit" in (
            answer.kept_running
        )
        assert await count(gateway) == "2"
        assert not _kept(made).exists()
        assert not (_kept(made).with_name("memory")).exists()
        await made.terminate(handle)


async def test_a_worker_that_died_has_nothing_to_keep(staffed: Node) -> None:
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, TEMPLATE)
    await staffed.kill(staffed.workers["worker-1"].process)
    refused = await _error(staffed.pause_kept(handle, TEMPLATE))
    assert refused.code() is grpc.StatusCode.NOT_FOUND
    answer = await staffed.checkpoint_full(handle, staffed.uri(UID), TEMPLATE)
    assert answer.memory_lost
    assert _mine() == []
    await staffed.restart(staffed.workers["worker-1"])  # it removes what it left
