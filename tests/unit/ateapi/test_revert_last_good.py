"""A revert of an actor that could not start from its snapshot goes back to the last that verifies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    ControlPlane,
    code_of,
    ref,
    resume,
    revert,
    suspend,
)
from tests.support.eventually import eventually
from tests.support.fake_atelet import snapshot_directory

FULL, DATA = pb.SNAPSHOT_CONTENT_SCOPE_FULL, pb.SNAPSHOT_CONTENT_SCOPE_DATA


async def _twice(plane: ControlPlane, *, memory: bool = True) -> tuple[pb.Actor, pb.Actor]:
    """`a` as it was suspended for the first and for the second time."""
    await plane.seed("a", memory=memory)
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    first = (await control.SuspendActor(suspend("a"))).actor
    await control.ResumeActor(resume("a"))
    return first, (await control.SuspendActor(suspend("a"))).actor


async def _crashed_and_reverted(plane: ControlPlane) -> pb.RevertActorResponse:
    plane.atelet.script("Restore", grpc.StatusCode.DATA_LOSS)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "INTERNAL"
    assert await plane.state("a") == "CRASHED"
    return await plane.control().RevertActor(revert("a"))


def _directory(actor: pb.Actor) -> Path:
    return snapshot_directory(actor.status.external_snapshot.snapshot_uri)


async def test_the_one_before_stays_until_the_actor_has_gone_on_from_the_newer(
    plane: ControlPlane,
) -> None:
    first, second = await _twice(plane)
    assert second.status.previous_snapshot == first.status.external_snapshot
    assert _directory(first).exists()
    running = (await plane.control().ResumeActor(resume("a"))).actor
    assert not running.status.HasField("previous_snapshot")
    await eventually(lambda: not _directory(first).exists())
    assert _directory(second).exists()


async def test_a_delete_removes_both(plane: ControlPlane) -> None:
    first, second = await _twice(plane)
    await plane.control().DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
    for each in (first, second):
        await eventually(lambda each=each: not _directory(each).exists())


def _shorten_memory(directory: Path) -> None:
    path = directory / "_memory.tar.zst"
    path.write_bytes(path.read_bytes()[:-1])


def _alter_files(directory: Path) -> None:
    path = directory / "data.tar.zst"
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def _remove_manifest(directory: Path) -> None:
    (directory / "manifest.json").unlink()


def _all_of_it(directory: Path) -> None:
    _shorten_memory(directory)
    _alter_files(directory)


def _nothing(directory: Path) -> None:
    assert directory.exists()


@pytest.mark.parametrize("spoil", [_shorten_memory, _alter_files, _remove_manifest])
async def test_from_a_damaged_one_it_goes_back_to_the_one_before(
    plane: ControlPlane, spoil: Callable[[Path], None]
) -> None:
    first, second = await _twice(plane)
    spoil(_directory(second))
    answer = await _crashed_and_reverted(plane)
    assert answer.actor.status == pb.ActorStatus(
        state=pb.ACTOR_STATE_SUSPENDED, external_snapshot=first.status.external_snapshot
    )
    assert "the memory and files of the snapshot before it, taken 2026-01-01" in answer.note
    await eventually(lambda: not _directory(second).exists())
    await plane.control().ResumeActor(resume("a"))
    uri = first.status.external_snapshot.snapshot_uri
    assert plane.atelet.last("Restore").snapshot_uri == uri
    assert _directory(first).exists()


@pytest.mark.parametrize(
    ("newest", "before", "kept", "note"),
    [
        (_shorten_memory, _shorten_memory, "second", "files, not memory, of the same snapshot"),
        (_all_of_it, _shorten_memory, "first", "files, not memory, of the snapshot before it"),
        # Whole, so of another runsc, say; and so is the one before.
        (_nothing, _nothing, "second", "files, not memory, of the same snapshot"),
        (_remove_manifest, _all_of_it, "", "it is back at its beginning"),
    ],
)
async def test_where_no_memory_is_good_the_newest_good_files_count(
    plane: ControlPlane,
    newest: Callable[[Path], None],
    before: Callable[[Path], None],
    kept: str,
    note: str,
) -> None:
    first, second = await _twice(plane)
    newest(_directory(second))
    before(_directory(first))
    answer = await _crashed_and_reverted(plane)
    status = answer.actor.status
    assert status.state == pb.ACTOR_STATE_SUSPENDED
    assert note in answer.note
    assert not status.HasField("previous_snapshot")
    if not kept:
        assert not status.HasField("external_snapshot")
        return
    chosen = first if kept == "first" else second
    assert status.external_snapshot.snapshot_uri == chosen.status.external_snapshot.snapshot_uri
    assert status.external_snapshot.content_scope == DATA


async def test_memory_of_another_runsc_is_passed_over_for_one_of_a_third(
    plane: ControlPlane,
) -> None:
    first, _ = await _twice(plane)
    manifest = _directory(first) / "manifest.json"
    fields = json.loads(manifest.read_text())
    fields["memory"]["runtime"]["version"] = "release-2"
    manifest.write_text(json.dumps(fields))
    answer = await _crashed_and_reverted(plane)
    assert answer.actor.status.external_snapshot == first.status.external_snapshot
    assert "its memory cannot go on here" in answer.note


async def test_files_that_cannot_be_unpacked_are_not_tried_twice(plane: ControlPlane) -> None:
    first, second = await _twice(plane, memory=False)
    answer = await _crashed_and_reverted(plane)
    assert answer.actor.status.external_snapshot == first.status.external_snapshot
    answer = await _crashed_and_reverted(plane)
    assert not answer.actor.status.HasField("external_snapshot")
    for each in (first, second):
        await eventually(lambda each=each: not _directory(each).exists())
