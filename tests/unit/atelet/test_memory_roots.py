"""Memory goes on with the root file system that it is of, or not at all: with real sandboxes."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.images import Image, ImageStore

from tests.support.eventually import eventually
from tests.support.gvisor_box import count, runsc
from tests.support.node import DATA, FULL, Node, node
from tests.support.web_image import build_web, import_web, web_template

UID, OTHER = (f"0f0e0d0c-0000-4000-8000-0000000002{n:02}" for n in range(2))


@dataclass
class Place:
    node: Node
    images: ImageStore
    program: bytes

    def import_web(self, version: str) -> Image:
        return import_web(self.images, self.node.root, self.program, version)

    def version(self, image: Image) -> Path:
        return image.rootfs.parent

    async def answer(self, worker: str) -> str:
        return await count(await self.node.gateway(worker))

    async def sleep(self, uri: str) -> None:
        """One request, then a suspend."""
        handle = self.node.handle("worker-1", UID)
        await self.node.run(handle, web_template())
        await self.answer("worker-1")
        await self.node.checkpoint_full(handle, uri, web_template())

    async def restart_agent(self) -> None:
        """Which has it look for what can go."""
        assert self.node.atelet is not None
        await self.node.stop(self.node.atelet)
        await self.node.start_atelet()
        before = len(self.node.registrar.seen["worker-1"])
        await eventually(lambda: len(self.node.registrar.seen["worker-1"]) > before)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build_web(tmp_path_factory.mktemp("web"))


@pytest.fixture
async def place(root: None, tmp_path: Path, program: bytes) -> AsyncIterator[Place]:
    runsc()
    images = tmp_path / "images"
    async with node(tmp_path, "--images", str(images)) as made:
        for name in ("worker-1", "worker-2"):
            await made.start_worker(name, "--sandbox", "gvisor", "--images", str(images))
        yield Place(made, ImageStore(images), program)


async def test_a_sleeper_wakes_on_its_own_files_after_the_image_was_replaced(place: Place) -> None:
    old, uri = place.import_web("old"), place.node.uri(UID)
    await place.sleep(uri)
    place.import_web("new")
    await place.restart_agent()
    assert place.version(old).exists(), "a snapshot names it"
    await place.node.restore(place.node.handle("worker-2", UID), web_template(), uri, FULL)
    assert await place.answer("worker-2") == "2 old old"
    # What is new, and what goes on from files alone, is given the new one.
    await place.node.run(place.node.handle("worker-1", OTHER, "other"), web_template())
    assert await place.answer("worker-1") == "1 new new"
    await place.node.terminate(place.node.handle("worker-2", UID))
    await place.node.restore(place.node.handle("worker-2", UID), web_template(), uri, DATA)
    assert await place.answer("worker-2") == "1 new new"


async def test_a_version_goes_when_neither_snapshot_nor_actor_needs_it(place: Place) -> None:
    old, uri = place.import_web("old"), place.node.uri(UID)
    await place.sleep(uri)
    handle = place.node.handle("worker-1", UID)
    await place.node.restore(handle, web_template(), uri, FULL)
    place.import_web("new")
    shutil.rmtree(place.node.root / "node" / "golden")
    shutil.rmtree(place.node.root / "snapshots" / "team")
    await place.restart_agent()
    assert place.version(old).exists(), "an actor runs on it"
    assert await place.answer("worker-1") == "2 old old"
    await place.node.terminate(handle)
    await place.restart_agent()
    await eventually(lambda: not place.version(old).exists())
    assert place.images.find("web") is not None


async def test_memory_of_a_version_that_is_gone_is_refused_and_its_files_start(
    place: Place,
) -> None:
    old, uri = place.import_web("old"), place.node.uri(UID)
    await place.sleep(uri)
    place.import_web("new")
    shutil.rmtree(place.version(old))
    handle = place.node.handle("worker-1", UID)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await place.node.restore(handle, web_template(), uri, FULL)
    assert refused.value.code() is grpc.StatusCode.DATA_LOSS
    said = refused.value.details() or ""
    assert f"version {old.version[:12]} of image 'web', which is not on this node" in said
    await place.node.restore(handle, web_template(), uri, DATA)
    assert await place.answer("worker-1") == "1 new new"


async def test_an_image_without_a_name_still_wakes_what_sleeps_on_it(place: Place) -> None:
    place.import_web("old")
    uri = place.node.uri(UID)
    await place.sleep(uri)
    place.images.remove("web")
    handle = place.node.handle("worker-1", UID)
    await place.node.restore(handle, web_template(), uri, FULL)
    assert await place.answer("worker-1") == "2 old old"
    with pytest.raises(grpc.aio.AioRpcError, match="'web' is not on this node"):
        await place.node.run(place.node.handle("worker-2", OTHER, "other"), web_template())
