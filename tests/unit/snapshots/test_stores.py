"""Both stores under the same tests: a file system, and a real S3 server in a process of its own."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.snapshots import ObjectStore, SnapshotUris, open_objects

from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as made:
        yield made


@pytest.fixture(params=["file", "s3"])
def location(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    if request.param == "file":
        return str(tmp_path / "store with space")
    server: S3Server = request.getfixturevalue("server")
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    return server.bucket(f"b{abs(hash(str(tmp_path)))}")


@pytest.fixture
def store(location: str) -> ObjectStore:
    return open_objects(location)


def _keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return sorted(found.key for found in store.list(prefix))


def test_what_is_put_is_got(store: ObjectStore) -> None:
    store.put("a/b/c/manifest.json", b"{}")
    assert store.get("a/b/c/manifest.json") == b"{}"
    assert store.exists("a/b/c/manifest.json")
    assert not store.exists("a/b/c/other")
    with pytest.raises(FileNotFoundError):
        store.get("a/b/c/other")


def test_large_objects_are_streamed_both_ways(store: ObjectStore) -> None:
    piece = bytes(range(256)) * 4096  # 1 MiB
    with store.writer("a/b/c/large") as file:
        for _ in range(20):
            file.write(piece)
    with store.reader("a/b/c/large") as file:
        copy = io.BytesIO()
        while got := file.read(300_000):
            copy.write(got)
    assert copy.getvalue() == piece * 20
    (found,) = store.list("a/b/")
    assert (found.key, found.size) == ("a/b/c/large", 20 << 20)


def test_what_is_not_there_cannot_be_read(store: ObjectStore) -> None:
    with pytest.raises(FileNotFoundError), store.reader("a/b/c/none") as file:
        file.read(1)


def test_a_writer_that_fails_leaves_nothing(store: ObjectStore) -> None:
    def fail() -> None:
        with store.writer("a/b/c/half") as file:
            file.write(b"x" * (9 << 20))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert _keys(store) == []


def test_objects_are_listed_by_prefix_and_removed_whole(store: ObjectStore) -> None:
    for key in ("a/b/c/manifest.json", "a/b/c/x", "a/b/d/manifest.json", "a/bb/c/manifest.json"):
        store.put(key, b"1")
    assert _keys(store, "a/b/") == ["a/b/c/manifest.json", "a/b/c/x", "a/b/d/manifest.json"]
    store.remove("a/b/c")
    store.remove("a/b/c")
    assert _keys(store) == ["a/b/d/manifest.json", "a/bb/c/manifest.json"]


def test_its_uris_lead_back_to_keys_and_nowhere_else(store: ObjectStore) -> None:
    uris = SnapshotUris(store.url)
    made = uris.new("team", "uid-1")
    key = uris.key(made)
    assert key is not None
    assert key.startswith("team/uid-1/")
    assert uris.of(key) == made
    for bad in (
        f"{store.url}/team/uid-1",
        f"{store.url}/team/uid-1/x/y",
        f"{store.url}/team/../x",
        f"{store.url}/team/%2e%2e/x",
        f"{store.url}x/team/uid-1/x",
        "file:///etc/a/b/c",
        "",
    ):
        assert uris.key(bad) is None, bad


def test_a_bucket_or_server_that_is_not_there_is_an_os_error(
    monkeypatch: pytest.MonkeyPatch, server: S3Server
) -> None:
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(OSError, match=r"object store.*NoSuchBucket"):
        open_objects("s3://no-such-bucket").put("a/b/c/d", b"")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(OSError, match="object store"):
        open_objects("s3://bucket").put("a/b/c/d", b"")


@pytest.mark.parametrize("location", ["s3://", "gs://bucket", "file://host/dir", "/proc/nothing"])
def test_a_bad_location_names_the_flag(location: str) -> None:
    with pytest.raises(AteError, match="--snapshots"):
        open_objects(location)
