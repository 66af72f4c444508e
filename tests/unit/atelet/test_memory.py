"""FULL snapshots through the node agent, with real workers and real sandboxes of runsc."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.gvisor import STATES
from atenet.snapshots import open_objects
from atenet.worker.sandbox.gvisor.runsc import processes

from tests.support.eventually import eventually, within
from tests.support.gvisor_box import count, counter_template, runsc
from tests.support.node import DATA, FULL, Node, node
from tests.support.s3_server import s3_server

UID = "0f0e0d0c-0000-4000-8000-000000000009"


@pytest.fixture
def small_store(root: None, tmp_path: Path) -> Iterator[Path]:
    """A disk for snapshots that holds 1 MiB."""
    where = tmp_path / "snapshots"
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", where], check=True)
    yield where
    subprocess.run(["umount", where], check=True)


@pytest.fixture
async def staffed(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    """Two workers of the gvisor class."""
    runsc()
    async with node(tmp_path) as made:
        await asyncio.gather(
            made.start_worker("worker-1", "--sandbox", "gvisor"),
            made.start_worker("worker-2", "--sandbox", "gvisor"),
        )
        yield made


@pytest.fixture
async def on_s3(
    root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Node, str]]:
    """The same node with its snapshots in a real S3 server, and its store's URL."""
    runsc()
    with s3_server(tmp_path / "s3.log") as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        url = server.bucket("snapshots")
        async with node(tmp_path, snapshots=url) as made:
            await made.start_worker("worker-1", "--sandbox", "gvisor")
            yield made, url


async def test_memory_goes_on_from_an_object_store(on_s3: tuple[Node, str]) -> None:
    node, url = on_s3
    template, uri = counter_template(), node.uri(UID)
    handle = node.handle("worker-1", UID)
    await node.run(handle, template)
    gateway = await node.gateway("worker-1")
    assert await count(gateway) == "1"
    await count(gateway, "/write/data/file")
    await node.checkpoint_full(handle, uri, template)
    store = open_objects(url)
    files = sorted(found.key.rpartition("/")[2] for found in store.list())
    assert files == ["_memory.tar.zst", "data.tar.zst", "manifest.json"]
    await node.restore(handle, template, uri, FULL)
    gateway = await node.gateway("worker-1")
    assert await count(gateway) == "2"
    assert await count(gateway, "/read/data/file") == "written"
    await node.terminate(handle)
    (manifest,) = (found.key for found in store.list() if found.key.endswith("manifest.json"))
    content = store.get(manifest)
    store.remove(manifest.rpartition("/")[0])
    store.put(manifest, content)
    refused = await _error(node.restore(handle, template, uri, FULL))
    assert refused.code() is grpc.StatusCode.DATA_LOSS
    assert "is missing" in (refused.details() or "")


def _mine(uid: str = UID) -> list[int]:
    return list(processes(lambda words: any(word.startswith(f"{uid}.") for word in words)))


async def _error(call) -> grpc.aio.AioRpcError:  # type: ignore[no-untyped-def]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_memory_and_files_go_on_on_another_worker(staffed: Node) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    assert [await count(gateway) for _ in range(2)] == ["1", "2"]
    await count(gateway, "/write/data/file")
    for _ in range(2):  # repeating it changes nothing
        answer = await staffed.checkpoint_full(handle, uri, template)
        assert (answer.content_scope, answer.found_stopped, answer.kept_running) == (
            FULL,
            False,
            "",
        )
        assert _mine() == []
    other = staffed.handle("worker-2", UID)
    timings = await staffed.restore(other, template, uri, FULL)
    assert timings.fetch_ms > 0
    gateway = await staffed.gateway("worker-2")
    assert await count(gateway) == "3"
    assert await count(gateway, "/read/data/file") == "written"
    assert await count(gateway, "/who") == "team/agent"
    assert not (staffed.root / "node" / "actors" / UID / "memory").exists()
    await staffed.terminate(other)
    assert _mine() == []


async def test_the_files_alone_can_be_gone_back_to(staffed: Node) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    assert await count(gateway) == "1"
    await count(gateway, "/write/data/file")
    await staffed.checkpoint_full(handle, uri, template)
    await staffed.restore(handle, template, uri, DATA)
    gateway = await staffed.gateway("worker-1")
    assert await count(gateway) == "1", "started anew"
    assert await count(gateway, "/read/data/file") == "written"
    await staffed.terminate(handle)


async def test_an_actor_that_cannot_be_stored_runs_on(staffed: Node, small_store: Path) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    assert await count(gateway) == "1"
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert "No space left on device" in answer.kept_running
    assert await count(gateway) == "2"
    assert list(small_store.glob("*/*/*")) == []
    assert not (staffed.root / "node" / "actors" / UID / "memory").exists()
    await staffed.terminate(handle)


def _archive(root: Path) -> Path:
    (found,) = root.glob("snapshots/*/*/*/_memory.tar.zst")
    return found


def _truncate(root: Path) -> None:
    archive = _archive(root)
    archive.write_bytes(archive.read_bytes()[:-1000])


def _alter(root: Path) -> None:
    archive = _archive(root)
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)


def _remove(root: Path) -> None:
    _archive(root).unlink()


def _edit(root: Path, change) -> None:  # type: ignore[no-untyped-def]
    manifest = _archive(root).with_name("manifest.json")
    fields = json.loads(manifest.read_text())
    change(fields)
    manifest.write_text(json.dumps(fields))


def _other_runsc(root: Path) -> None:
    _edit(root, lambda fields: fields["memory"]["runtime"].update(version="release-20990101.0"))


def _other_processor(root: Path) -> None:
    _edit(root, lambda fields: fields["memory"]["runtime"]["features"].append("quantum"))


def _other_template(root: Path) -> None:
    _edit(root, lambda fields: fields.update(template_uid="another"))


def _other_host(root: Path) -> None:
    _edit(root, lambda fields: fields["memory"]["roots"].update(main="host:0123"))


def _unnamed_root(root: Path) -> None:
    _edit(root, lambda fields: fields["memory"].pop("roots"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_truncate, "checksum"),
        (_alter, "checksum"),
        (_remove, "is missing"),
        (_other_runsc, "is of runsc release-20990101.0"),
        (_other_processor, "features that this one lacks: quantum"),
        (_other_template, "of another template"),
        (_other_host, "of other programs than this host has now"),
        (_unnamed_root, "does not say which root file systems"),
    ],
)
async def test_memory_that_cannot_go_on_is_refused_with_the_reason(
    staffed: Node, spoil, reason: str
) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    await staffed.checkpoint_full(handle, uri, template)
    spoil(staffed.root)
    refused = await _error(staffed.restore(handle, template, uri, FULL))
    assert refused.code() is grpc.StatusCode.DATA_LOSS
    assert reason in (refused.details() or "")
    assert _mine() == []


async def test_a_killed_workers_actor_ends_and_its_files_are_stored(staffed: Node) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    await count(await staffed.gateway("worker-1"), "/write/data/file")
    worker = staffed.workers["worker-1"]
    await staffed.kill(worker.process)
    assert _mine() != []
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert (answer.content_scope, answer.found_stopped) == (DATA, True)
    assert answer.memory_lost
    assert _mine() == []
    state = STATES / worker.prefix
    assert state.exists()
    await staffed.restart(worker)
    assert not state.exists() or list(state.iterdir()) == []
    other = staffed.handle("worker-2", UID)
    await staffed.restore(other, template, uri, FULL)
    assert await count(await staffed.gateway("worker-2"), "/read/data/file") == "written"
    await staffed.terminate(other)


async def test_an_agent_that_is_killed_between_storing_and_ending_ends_it_when_asked_again(
    staffed: Node,
) -> None:
    template, uri = counter_template(), staffed.uri(UID)
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    await count(gateway)
    await staffed.checkpoint_full(handle, uri, template)
    kept = staffed.root / "kept"
    shutil.copytree(staffed.root / "snapshots", kept)
    await staffed.restore(handle, template, uri, FULL)
    await staffed.pause(handle)  # as it stands when its memory has been stored
    assert _mine() != []
    answer = await staffed.checkpoint_full(handle, uri, template)
    assert answer.content_scope == FULL
    await eventually(lambda: _mine() == [])


async def test_a_pause_stands_still_in_place(staffed: Node) -> None:
    template = counter_template()
    handle = staffed.handle("worker-1", UID)
    await staffed.run(handle, template)
    gateway = await staffed.gateway("worker-1")
    assert await count(gateway) == "1"
    before = _mine()
    await staffed.pause(handle)
    with pytest.raises(TimeoutError):
        await within(count(gateway), 0.3)
    await staffed.thaw(handle)
    assert int(await count(gateway)) >= 2
    assert set(before) <= set(_mine())
    await staffed.terminate(handle)
