"""A system whose snapshots are in S3, or in a directory of one's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet.snapshots import open_objects

from tests.support.local_system import Ate, ate_home
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.timeout(300)
SECRET = "not-for-any-log"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as server:
        yield server


@pytest.fixture
def with_credentials(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    for name, value in s3.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return s3


def test_a_system_keeps_its_snapshots_in_s3(root: None, with_credentials: S3Server) -> None:
    url = with_credentials.bucket("mine")
    with ate_home() as ate:
        up = ate.up("--workers", "1", "--snapshots", url, "--suspend-grace", "1s")
        assert up.code == 0, up
        ate.furnish("one")
        assert [ate.count(add=True) for _ in range(2)] == [1, 2]
        ate.good("actor", "suspend", "demo/one")
        listed = ate.good("snapshot", "list", "-o", "json").json
        assert [(s["actor"], s["state"]) for s in listed] == [("demo/one", "referenced")]
        assert listed[0]["uri"].startswith(f"{url}/demo/")
        (found,) = ate.good("snapshot", "verify", "-o", "json").json
        assert found["state"] == "good"
        objects = open_objects(url)
        (archive,) = (o.key for o in objects.list() if o.key.endswith(".tar.zst"))
        orphan = archive.rpartition("/")[0][:-32] + "0" * 32
        objects.put(f"{orphan}/manifest.json", b"{}")
        gone = ate.good("snapshot", "gc", "--older-than", "0s", "-o", "json").json
        assert [each["uri"] for each in gone] == [f"{url}/{orphan}"]
        content = objects.get(archive)
        objects.put(archive, content[:-1])
        assert ate("snapshot", "verify").code == 1
        objects.put(archive, content)
        assert ate.count() == 2
        assert list(ate.layout.snapshots.iterdir()) == []
        ate.good("down")
        assert _mentions(ate, SECRET) == []
        assert _holders(ate, SECRET) == []


def _mentions(ate: Ate, secret: str) -> list[str]:
    """Files of the system that have it in them."""
    files = [path for path in ate.layout.home.rglob("*") if path.is_file()]
    return [path.name for path in files if secret.encode() in path.read_bytes()]


def _holders(ate: Ate, secret: str) -> list[int]:
    """Processes that outlived the system with it in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = entry.read_bytes()
        except OSError:
            continue
        if secret.encode() in content and str(ate.layout.system_id).encode() in content:
            found.append(int(entry.parent.name))
    return found


def test_only_those_that_need_the_credentials_have_them(
    root: None, with_credentials: S3Server
) -> None:
    url = with_credentials.bucket("theirs")
    with ate_home() as ate:
        assert ate.up("--workers", "1", "--snapshots", url).code == 0
        holders = {
            name
            for name, process in ate.processes().items()
            if SECRET.encode() in Path(f"/proc/{process['pid']}/environ").read_bytes()
        }
        assert holders == {"ateapi", "atelet"}
        ate.good("down")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://nobody-made-this", "--snapshots s3://nobody-made-this: object store"),
        ("s3:///prefix", "names its bucket"),
        ("ftp://somewhere", "neither a directory nor an s3:// URL"),
        ("here/below", "not an absolute path"),
        (f"s3://me:{SECRET}@bucket/x", "credentials do not belong into the URL"),
    ],
)
def test_a_store_that_cannot_be_is_refused_before_anything_starts(
    root: None, with_credentials: S3Server, url: str, said: str
) -> None:
    with ate_home() as ate:
        up = ate.up("--snapshots", url)
        assert up.code != 0
        assert said in up.err
        assert SECRET not in up.out + up.err
        assert ate.left_behind() == []


def test_a_directory_of_ones_own(root: None, tmp_path: Path) -> None:
    with ate_home() as ate:
        where = tmp_path / "kept here"
        assert ate.up("--workers", "1", "--snapshots", str(where)).code == 0
        ate.furnish("one")
        assert ate.count(add=True) == 1
        ate.good("actor", "suspend", "demo/one")
        assert len(list(where.glob("demo/*/*/manifest.json"))) == 1
        assert ate.good("snapshot", "list", "-o", "json").json[0]["state"] == "referenced"
        assert ate.count() == 1
        ate.good("down")
    assert where.exists()
