"""Golden images: new actors of a template go on from one boot of it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.atelet.golden import GoldenImages
from atenet.errors import AteError
from atenet.gvisor import MemoryNeeds, Runtime
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2
from atenet.worker.sandbox.gvisor.runsc import processes

from tests.support.actor_box import ask, http_probe, python, template
from tests.support.eventually import eventually
from tests.support.gvisor_box import COUNTER, count, counter_template, runsc
from tests.support.node import FULL, Node, node, patiently

UIDS = [f"0f0e0d0c-0000-4000-8000-0000000001{n:02}" for n in range(4)]


@pytest.fixture
async def staffed(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    """One worker a test's actor; the gateway namespace of a worker is then its actor's."""
    runsc()
    async with node(tmp_path) as made:
        await asyncio.gather(
            *(made.start_worker(f"worker-{n}", "--sandbox", "gvisor") for n in range(3))
        )
        yield made


async def _wake(node: Node, number: int, template: pb.ActorTemplate) -> Path:
    """Actor N on worker N; its gateway."""
    worker = f"worker-{number}"
    await node.run(node.handle(worker, UIDS[number], f"agent-{number}"), template)
    return await node.gateway(worker)


async def test_new_actors_go_on_from_one_boot_and_are_somebody_of_their_own(staffed: Node) -> None:
    made = counter_template()
    first, second = await _wake(staffed, 0, made), await _wake(staffed, 1, made)
    assert await count(first, "/started") == await count(second, "/started")
    assert [await count(first) for _ in range(3)] == ["1", "2", "3"]
    assert await count(second) == "1"
    assert await count(first, "/who") == "team/agent-0"
    assert await count(second, "/who") == "team/agent-1"
    await count(first, "/write/data/mine")
    answer = await ask(
        second, b"GET /read/data/mine HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    assert b"written" not in answer, "files are each actor's own"
    for number in (0, 1):
        await staffed.terminate(staffed.handle(f"worker-{number}", UIDS[number]))


async def test_those_that_start_at_once_share_the_boot(staffed: Node) -> None:
    made = counter_template()
    gateways = await asyncio.gather(*(_wake(staffed, n, made) for n in range(3)))
    started = {await count(gateway, "/started") for gateway in gateways}
    assert len(started) == 1


async def test_another_template_is_another_boot(staffed: Node) -> None:
    one = await _wake(staffed, 0, counter_template("template-1"))
    other = await _wake(staffed, 1, counter_template("template-2"))
    assert await count(one, "/started") != await count(other, "/started")


async def test_a_template_may_ask_for_a_boot_of_each(staffed: Node) -> None:
    made = counter_template()
    made.snapshot_config.boot_each = True
    one, other = await _wake(staffed, 0, made), await _wake(staffed, 1, made)
    assert await count(one, "/started") != await count(other, "/started")


async def test_a_program_that_must_be_somebody_is_booted_one_by_one(staffed: Node) -> None:
    must = (
        "import pathlib, sys\nif not pathlib.Path('/run/ate/actor-id').read_text(): sys.exit(1)\n"
    )
    made = template(*python(must + COUNTER), probe=http_probe("/ready"))
    made.metadata.uid = "template-3"
    made.sandbox_config.sandbox_class = "gvisor"
    made.snapshot_config.content_scope = FULL
    one, other = await _wake(staffed, 0, made), await _wake(staffed, 1, made)
    assert await count(one, "/started") != await count(other, "/started")
    assert await count(one, "/who") == "team/agent-0"


async def test_an_actor_of_a_golden_image_sleeps_and_wakes_like_any_other(staffed: Node) -> None:
    made, uri = counter_template(), staffed.uri(UIDS[0])
    gateway = await _wake(staffed, 0, made)
    assert await count(gateway) == "1"
    handle = staffed.handle("worker-0", UIDS[0], "agent-0")
    await staffed.checkpoint_full(handle, uri, made)
    await staffed.restore(staffed.handle("worker-1", UIDS[0], "agent-0"), made, uri, FULL)
    assert await count(await staffed.gateway("worker-1")) == "2"


async def test_an_image_of_another_runsc_is_made_anew(staffed: Node) -> None:
    made = counter_template()
    first = await count(await _wake(staffed, 0, made), "/started")
    (kept,) = (staffed.root / "node" / "golden").glob("*/golden.json")
    kept.write_text(kept.read_text().replace("atenet-", "other-").replace("release-", "other-"))
    second = await count(await _wake(staffed, 1, made), "/started")
    third = await count(await _wake(staffed, 2, made), "/started")
    assert second != first
    assert third == second


async def test_an_agent_that_is_killed_while_it_makes_one_starts_the_actor_when_asked_again(
    staffed: Node,
) -> None:
    slow = "import time; time.sleep(3)\n"
    made = template(*python(slow + COUNTER), probe=http_probe("/ready"))
    made.metadata.uid = "template-4"
    made.sandbox_config.sandbox_class = "gvisor"
    made.snapshot_config.content_scope = FULL
    handle = staffed.handle("worker-0", UIDS[0], "agent-0")
    starting = asyncio.ensure_future(staffed.run(handle, made))
    await eventually(lambda: _of(UIDS[0]) != [])
    assert staffed.atelet is not None
    await staffed.kill(staffed.atelet)
    await asyncio.gather(starting, return_exceptions=True)
    await staffed.start_atelet()
    epochs = len(staffed.registrar.seen["worker-0"])
    await eventually(lambda: len(staffed.registrar.seen["worker-0"]) > epochs)
    await patiently(lambda: staffed.run(handle, made))
    gateway = await staffed.gateway("worker-0")
    assert await count(gateway, "/who") == "team/agent-0"
    assert len(list((staffed.root / "node" / "golden").glob(".*"))) == 0
    for pid in _of(UIDS[0]):
        os.kill(pid, signal.SIGKILL)


def _of(uid: str) -> list[int]:
    return list(processes(lambda words: any(word.startswith(f"{uid}.") for word in words)))


async def test_an_image_goes_with_its_template(staffed: Node) -> None:
    one, other = counter_template("template-1"), counter_template("template-2")
    await _wake(staffed, 0, one)
    gateway = await _wake(staffed, 1, other)
    golden = staffed.root / "node" / "golden"
    for uid in ("template-1", "template-1", "never-was", "../snapshots"):
        request = atelet_pb2.ForgetTemplateRequest(template_uid=uid)
        await staffed.stub.ForgetTemplate(request, timeout=20)
    assert [path.name for path in golden.iterdir()] == ["template-2"]
    assert (staffed.root / "snapshots").exists()
    assert await count(gateway) == "1"


async def test_an_image_whose_memory_was_altered_is_made_anew(staffed: Node) -> None:
    made = counter_template()
    first = await count(await _wake(staffed, 0, made), "/started")
    (pages,) = (staffed.root / "node" / "golden").glob("*/memory/pages.img")
    content, seen = bytearray(pages.read_bytes()), pages.stat()
    content[len(content) // 2] ^= 1
    pages.write_bytes(content)
    os.utime(pages, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    # The agent compares checksums when it uses an image for the first time.
    assert staffed.atelet is not None
    await staffed.stop(staffed.atelet)
    await staffed.start_atelet()
    second = await count(await _wake(staffed, 1, made), "/started")
    assert second != first


NEEDS = MemoryNeeds(Runtime("release-1", "x86_64", ()), {"main": "host:1"})


def _template(uid: str) -> pb.ActorTemplate:
    return pb.ActorTemplate(metadata=pb.ResourceMetadata(uid=uid, name=uid))


def _made(images: GoldenImages, uid: str, size: int = 4096) -> pb.ActorTemplate:
    made = _template(uid)
    (images.begin(made) / "pages.img").write_bytes(os.urandom(size))
    images.keep(made, {}, NEEDS)
    return made


def test_images_that_no_start_has_used_for_a_week_go(tmp_path: Path) -> None:
    images = GoldenImages(tmp_path)
    made = _made(images, "t1")
    used = (tmp_path / "t1").stat().st_mtime
    images.forget_unused(now=used + 6 * 24 * 3600)
    found = images.find(made)
    assert found is not None
    assert found.needs == NEEDS
    images.forget_unused(now=used + 9 * 24 * 3600)
    assert images.find(made) is None


def test_half_an_image_is_none(tmp_path: Path) -> None:
    images = GoldenImages(tmp_path)
    made = _template("t1")
    (images.begin(made) / "pages.img").write_bytes(b"half")
    assert images.find(made) is None
    assert GoldenImages(tmp_path).find(made) is None
    assert list(tmp_path.iterdir()) == []


def test_the_least_lately_used_make_room(tmp_path: Path) -> None:
    images = GoldenImages(tmp_path, limit=300_000)
    one, two = _made(images, "one", 100_000), _made(images, "two", 100_000)
    os.utime(tmp_path / "two", (1, 1))
    three = _made(images, "three", 100_000)
    assert images.find(two) is None
    assert images.find(one) is not None
    assert images.find(three) is not None
    large = _template("large")
    (images.begin(large) / "pages.img").write_bytes(os.urandom(400_000))
    with pytest.raises(AteError, match="all together may have 300000"):
        images.keep(large, {}, NEEDS)
    images.give_up(large, for_good=True)
    assert images.find(one) is not None


@pytest.mark.parametrize("spoil", ["shorter", "touched", "gone", "more"])
def test_memory_that_is_not_as_it_was_written_is_no_image(tmp_path: Path, spoil: str) -> None:
    images = GoldenImages(tmp_path)
    made = _made(images, "t1")
    pages = tmp_path / "t1" / "memory" / "pages.img"
    if spoil == "shorter":
        pages.write_bytes(b"1")
    elif spoil == "touched":
        os.utime(pages, (1, 1))
    elif spoil == "gone":
        pages.unlink()
    else:
        pages.with_name("another").touch()
    assert images.find(made) is None
    assert not (tmp_path / "t1").exists()


def test_a_template_that_could_not_be_booted_is_tried_again_ever_later(tmp_path: Path) -> None:
    images, made = GoldenImages(tmp_path), _template("t1")
    assert not images.failed(made)
    images.give_up(made, for_good=False)
    assert not images.failed(made)
    images.give_up(made, for_good=True, now=1000)
    assert images.failed(made, now=1059)
    assert not images.failed(made, now=1061)
    images.give_up(made, for_good=True, now=2000)
    assert GoldenImages(tmp_path).failed(made, now=2119)
    assert not images.failed(made, now=2121)
    for _ in range(20):
        images.give_up(made, for_good=True, now=3000)
    assert images.failed(made, now=3000 + 5 * 3600)
    assert not images.failed(made, now=3001 + 6 * 3600)
    images.begin(made)
    images.keep(made, {}, NEEDS)
    assert not images.failed(made, now=3001)
