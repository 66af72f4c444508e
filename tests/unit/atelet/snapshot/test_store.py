import errno
import json
import os
from pathlib import Path
from typing import IO

import pytest
from atenet.atelet.snapshot import (
    Manifest,
    SnapshotDamagedError,
    SnapshotMissingError,
    SnapshotStore,
    archive,
)
from atenet.errors import AteError
from atenet.snapshots.filesystem import FileObjects

DESCRIBED = Manifest(
    atespace="team",
    actor="agent",
    actor_uid="uid-1",
    content_scope="SNAPSHOT_CONTENT_SCOPE_DATA",
    created="2026-01-01T00:00:00.000+00:00",
    found_stopped=False,
    volumes=(),
)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(FileObjects(tmp_path / "snapshots"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("kept")
    return tmp_path / "data"


def uri(tmp_path: Path, name: str = "s1", uid: str = "uid-1") -> str:
    return f"file://{tmp_path}/snapshots/team/{uid}/{name}"


def directory(tmp_path: Path, name: str = "s1") -> Path:
    return tmp_path / "snapshots" / "team" / "uid-1" / name


def test_what_is_saved_is_loaded(store: SnapshotStore, data: Path, tmp_path: Path) -> None:
    saved = store.save(uri(tmp_path), {"data": data, "more": data}, DESCRIBED)
    assert store.load(uri(tmp_path), tmp_path / "back") == saved == store.find(uri(tmp_path))
    assert (tmp_path / "back" / "data" / "file").read_text() == "kept"
    assert (tmp_path / "back" / "more" / "file").read_text() == "kept"


def test_without_volumes_it_is_a_snapshot_too(store: SnapshotStore, tmp_path: Path) -> None:
    store.save(uri(tmp_path), {}, DESCRIBED)
    store.load(uri(tmp_path), tmp_path / "back")
    assert names(tmp_path / "back") == []


def test_the_manifest_is_written_last(
    store: SnapshotStore, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash before it leaves nothing that could be taken for a snapshot."""
    real = os.fsync
    synced: list[list[str]] = []

    def fsync(descriptor: int) -> None:
        here = directory(tmp_path)
        synced.append(names(here) if here.exists() else [])
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    with_archive = [listing for listing in synced if "data.tar.zst" in listing]
    assert with_archive[0] == ["data.tar.zst"]
    assert synced[-1] == ["data.tar.zst", "manifest.json"]


def test_a_beginning_without_manifest_is_nothing(
    store: SnapshotStore, data: Path, tmp_path: Path
) -> None:
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    (directory(tmp_path) / "manifest.json").unlink()
    assert store.find(uri(tmp_path)) is None
    with pytest.raises(SnapshotMissingError, match="there is no snapshot"):
        store.load(uri(tmp_path), tmp_path / "back")


def test_a_retry_overwrites_what_an_interrupted_one_left(
    store: SnapshotStore, data: Path, tmp_path: Path
) -> None:
    directory(tmp_path).mkdir(parents=True)
    (directory(tmp_path) / "data.tar.zst").write_bytes(b"half")
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    store.load(uri(tmp_path), tmp_path / "back")
    assert (tmp_path / "back" / "data" / "file").read_text() == "kept"


def test_a_full_disk_leaves_no_snapshot_and_a_retry_succeeds(
    store: SnapshotStore, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, target: IO[bytes]) -> None:
        target.write(b"as far as it went")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(archive, "write", full)
        with pytest.raises(OSError, match="No space left"):
            store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    assert store.find(uri(tmp_path)) is None
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    store.load(uri(tmp_path), tmp_path / "back")


def test_given_up_beginnings_go_and_committed_snapshots_stay(
    store: SnapshotStore, data: Path, tmp_path: Path
) -> None:
    store.save(uri(tmp_path, "s1"), {"data": data}, DESCRIBED)
    directory(tmp_path, "given-up").mkdir()
    (directory(tmp_path, "given-up") / "data.tar.zst").write_bytes(b"half")
    store.save(uri(tmp_path, "s2"), {"data": data}, DESCRIBED)
    assert names(directory(tmp_path).parent) == ["s1", "s2"]


@pytest.mark.parametrize("position", [0.0, 0.3, 0.6, 0.99])
def test_a_flipped_bit_is_found_and_nothing_is_unpacked(
    store: SnapshotStore, data: Path, tmp_path: Path, position: float
) -> None:
    (data / "more").write_bytes(os.urandom(100_000))
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    file = directory(tmp_path) / "data.tar.zst"
    content = bytearray(file.read_bytes())
    content[int(position * (len(content) - 1))] ^= 0x10
    file.write_bytes(content)
    with pytest.raises(SnapshotDamagedError, match=r"data.tar.zst is damaged"):
        store.load(uri(tmp_path), tmp_path / "back")
    assert not (tmp_path / "back").exists()
    assert not (tmp_path / "back.partial").exists()


@pytest.mark.parametrize("keep", [0, 10, 0.5])
def test_a_cut_archive_is_found(
    store: SnapshotStore, data: Path, tmp_path: Path, keep: float
) -> None:
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    file = directory(tmp_path) / "data.tar.zst"
    content = file.read_bytes()
    file.write_bytes(content[: int(keep if keep >= 1 else keep * len(content))])
    with pytest.raises(SnapshotDamagedError, match=r"data\.tar\.zst"):
        store.load(uri(tmp_path), tmp_path / "back")


def test_a_missing_archive_is_found(store: SnapshotStore, data: Path, tmp_path: Path) -> None:
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    (directory(tmp_path) / "data.tar.zst").unlink()
    with pytest.raises(SnapshotDamagedError, match=r"data.tar.zst is missing"):
        store.load(uri(tmp_path), tmp_path / "back")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": "other/9"}', b'{"format": "atenet-snapshot/1"}'],
)
def test_a_damaged_manifest_is_named(
    store: SnapshotStore, data: Path, tmp_path: Path, content: bytes
) -> None:
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    (directory(tmp_path) / "manifest.json").write_bytes(content)
    with pytest.raises(SnapshotDamagedError, match=r"manifest.json is damaged"):
        store.load(uri(tmp_path), tmp_path / "back")


def test_a_manifest_cannot_name_files_elsewhere(
    store: SnapshotStore, data: Path, tmp_path: Path
) -> None:
    store.save(uri(tmp_path), {"data": data}, DESCRIBED)
    file = directory(tmp_path) / "manifest.json"
    for field, value in (("file", "../../x"), ("name", "../../x"), ("name", "/tmp/x")):
        fields = json.loads(file.read_text())
        fields["volumes"][0][field] = value
        file.write_text(json.dumps(fields))
        with pytest.raises(SnapshotDamagedError, match=r"manifest.json is damaged"):
            store.load(uri(tmp_path), tmp_path / "back")


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "s3://bucket/team/uid-1/s1",
        "file:///etc/passwd",
        "file://{store}",
        "file://{store}/team/uid-1",
        "file://{store}/team/uid-1/s1/deeper",
        "file://{store}/team/../../x",
        "file://{store}/team/uid-1/..",
        "file://host{store}/team/uid-1/s1",
        "file://{store}%2F..%2F..%2Fx/y/z",
    ],
)
def test_only_this_stores_names_are_taken(store: SnapshotStore, tmp_path: Path, bad: str) -> None:
    with pytest.raises(AteError, match="not in this node's store"):
        store.find(bad.format(store=tmp_path / "snapshots"))


def test_a_name_with_escapes_is_read_as_it_was_written(
    store: SnapshotStore, data: Path, tmp_path: Path
) -> None:
    named = f"file://{tmp_path}/snapshots/team/uid-1/with%20space"
    store.save(named, {"data": data}, DESCRIBED)
    assert (directory(tmp_path, "with space") / "manifest.json").exists()
