"""kill -9 of worker, agent and runsc in the middle of things: what follows works, and nothing is left."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.gvisor import STATES
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2
from atenet.worker.network import netns
from atenet.worker.sandbox.gvisor.runsc import processes

from tests.support.eventually import eventually
from tests.support.gvisor_box import count, counter_template, runsc
from tests.support.node import DATA, FULL, Node, RunningWorker, node, patiently

UID = "0f0e0d0c-0000-4000-8000-000000000012"
# Seconds into a start or a checkpoint, which take some tenths.
MOMENTS = (0.01, 0.06, 0.12, 0.2, 0.35)


@pytest.fixture
async def staffed(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    runsc()
    async with node(tmp_path) as made:
        await asyncio.gather(
            *(
                made.start_worker(name, "--sandbox", "gvisor", "--network-pool", "0")
                for name in ("worker-1", "worker-2")
            )
        )
        yield made


def _mine() -> list[int]:
    return list(processes(lambda words: any(word.startswith(f"{UID}.") for word in words)))


def _left(node: Node, worker: RunningWorker) -> list[str]:
    """What a worker that hosts nothing has on the machine."""
    state = STATES / worker.prefix
    scratch = state / "work"
    mounts = Path("/proc/mounts").read_text().splitlines()
    kept = [path.name for path in state.glob("*")] if state.exists() else []
    return [
        *(f"process {pid}" for pid in _mine()),
        *(f"namespace {name}" for name in netns.names(worker.prefix)),
        *(f"state {name}" for name in kept if "netns" not in name and name != "work"),
        *(f"file {path.name}" for path in scratch.glob("*") if path.name != "root"),
        *(f"mount {line}" for line in mounts if worker.prefix in line and "null-netns" not in line),
        *(f"cgroup {g}" for g in Path("/sys/fs/cgroup").glob(f"*/atenet/{worker.prefix}*")),
    ]


async def _kill_after(node: Node, process: str, moment: float) -> None:
    await asyncio.sleep(moment)
    if process == "runsc":
        for pid in _mine():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        victim = node.atelet if process == "atelet" else node.workers["worker-1"].process
        assert victim is not None
        await node.kill(victim)


async def _raise_again(node: Node, process: str) -> None:
    if process == "atelet":
        seen = {name: len(node.registrar.seen[name]) for name in node.workers}
        await node.start_atelet()
        await eventually(
            lambda: all(len(node.registrar.seen[name]) > seen[name] for name in node.workers)
        )
    elif process == "worker":
        await node.restart(node.workers["worker-1"])


async def _slept(node: Node) -> str:
    """An actor that has counted to 1 and written a file, and sleeps; its snapshot."""
    template, uri = counter_template(), node.uri(UID)
    handle = node.handle("worker-1", UID)
    await node.run(handle, template)
    gateway = await node.gateway("worker-1")
    assert await count(gateway) == "1"
    await count(gateway, "/write/data/file")
    await node.checkpoint_full(handle, uri, template)
    return uri


@pytest.mark.timeout(300)
@pytest.mark.parametrize("process", ["worker", "atelet", "runsc"])
async def test_killed_while_it_wakes(staffed: Node, process: str) -> None:
    template, uri = counter_template(), await _slept(staffed)
    for moment in MOMENTS:
        handle = staffed.handle("worker-1", UID)
        waking = asyncio.ensure_future(staffed.restore(handle, template, uri, FULL))
        await _kill_after(staffed, process, moment)
        await asyncio.gather(waking, return_exceptions=True)
        await _raise_again(staffed, process)
        await patiently(lambda: staffed.terminate(staffed.handle("worker-1", UID)))
        await eventually(lambda: _left(staffed, staffed.workers["worker-1"]) == [], 10)
        other = staffed.handle("worker-2", UID)
        await staffed.restore(other, template, uri, FULL)
        gateway = await staffed.gateway("worker-2")
        assert await count(gateway) == "2", moment
        assert await count(gateway, "/read/data/file") == "written"
        await staffed.terminate(other)
        assert _mine() == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("process", ["worker", "atelet", "runsc"])
async def test_killed_while_it_is_put_to_sleep(staffed: Node, process: str) -> None:
    template, uri = counter_template(), await _slept(staffed)
    for moment in MOMENTS:
        handle = staffed.handle("worker-1", UID)
        await patiently(lambda handle=handle, uri=uri: staffed.restore(handle, template, uri, FULL))
        counted = int(await count(await staffed.gateway("worker-1")))
        taken = staffed.uri(UID)
        sleeping = asyncio.ensure_future(staffed.checkpoint_full(handle, taken, template))
        await _kill_after(staffed, process, moment)
        await asyncio.gather(sleeping, return_exceptions=True)
        await _raise_again(staffed, process)
        # As the control plane does: again, for the incarnation that it was on, until it is stored.
        answer = None
        for epoch in (handle, staffed.handle("worker-1", UID)):
            with suppress(grpc.aio.AioRpcError):
                answer = await patiently(
                    lambda epoch=epoch, uri=taken: staffed.checkpoint_full(epoch, uri, template)
                )
                break
        assert answer is not None, moment
        assert answer.kept_running == ""
        await eventually(lambda: _left(staffed, staffed.workers["worker-1"]) == [], 10)
        other = staffed.handle("worker-2", UID)
        await staffed.restore(other, template, taken, answer.content_scope)
        gateway = await staffed.gateway("worker-2")
        # Its memory, or, where that was lost, a new start on its files.
        expected = counted + 1 if answer.content_scope == FULL else 1
        assert answer.content_scope in (FULL, DATA)
        assert await count(gateway) == str(expected), moment
        assert await count(gateway, "/read/data/file") == "written"
        await staffed.terminate(other)
        assert not (staffed.root / "node" / "actors" / UID / "memory").exists()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("process", ["worker", "atelet", "runsc"])
async def test_killed_while_it_is_paused_or_goes_on_from_that(staffed: Node, process: str) -> None:
    template, uri = counter_template(), await _slept(staffed)
    directory = staffed.root / "node" / "actors" / UID
    for moment in MOMENTS:
        handle = staffed.handle("worker-1", UID)
        await patiently(lambda handle=handle, uri=uri: staffed.restore(handle, template, uri, FULL))
        pausing = asyncio.ensure_future(staffed.pause_kept(handle, template))
        await _kill_after(staffed, process, moment)
        await asyncio.gather(pausing, return_exceptions=True)
        await _raise_again(staffed, process)
        stored = await _paused_after_all(staffed, handle, template)
        if not stored:
            await patiently(lambda: staffed.terminate(staffed.handle("worker-1", UID)))
        else:
            other = staffed.handle("worker-2", UID)
            await patiently(lambda other=other: staffed.restore_kept(other, template))
            gateway = await staffed.gateway("worker-2")
            assert await count(gateway) == "2", moment
            assert await count(gateway, "/read/data/file") == "written"
            await staffed.terminate(other)
        await eventually(lambda: _left(staffed, staffed.workers["worker-1"]) == [], 10)
        await eventually(lambda: [path.name for path in directory.iterdir()] == ["logs"])


async def _paused_after_all(
    node: Node, handle: atelet_pb2.ActorHandle, template: pb.ActorTemplate
) -> bool:
    """As the control plane does: again; False when its memory is lost."""
    try:
        answer = await patiently(lambda: node.pause_kept(handle, template))
    except grpc.aio.AioRpcError as e:
        if e.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        return False
    return bool(answer.stored)
