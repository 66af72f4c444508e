"""Images from what other tools write, and their actors."""

import io
import json
import os
import subprocess
import sysconfig
import tarfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.images import Image, ImageStore, unpack
from atenet.images.source import fill_from
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.sandbox import Cgroups, GvisorSandbox, InvalidTemplateError
from atenet.worker.sandbox.gvisor.bundle import ACCOUNT

from tests.support.actor_box import ActorBox, actor_box
from tests.support.gvisor_box import runsc
from tests.support.image_archive import docker_archive, layer, oci_archive

CONFIG = {
    "Entrypoint": ["/bin/tell"],
    "Cmd": ["one", "two"],
    "Env": ["PATH=/bin", "COLOUR=blue"],
    "WorkingDir": "/work",
}
# Says what it was started as; linked statically, so it needs nothing else in its image.
TELL = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
  char where[256];
  for (int i = 0; i < count; i++) printf("%s ", words[i]);
  printf("%s %s %s\\n", getcwd(where, sizeof where), getenv("COLOUR"), getenv("PATH"));
  FILE *file = fopen("/etc/written", "w");
  printf("%s %d\\n", file ? "writes" : "cannot write", (int)getuid());
  return 0;
}
"""
pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


@pytest.fixture(scope="module")
def tell(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    where = tmp_path_factory.mktemp("tell")
    (where / "tell.c").write_text(TELL)
    command = ["cc", "-static", "-O1", "-o", where / "tell", where / "tell.c"]
    subprocess.run(command, check=True)
    return (where / "tell").read_bytes()


def _import(store: ImageStore, source: Path, name: str = "tool", *, replace: bool = False) -> Image:
    return store.add(name, str(source), lambda rootfs: fill_from(source, rootfs), replace=replace)


@pytest.mark.parametrize("write", [oci_archive, docker_archive])
@pytest.mark.parametrize("compressed", [False, True])
def test_layers_lie_on_each_other(store: ImageStore, tmp_path: Path, write, compressed) -> None:  # type: ignore[no-untyped-def]
    first = layer(
        {"a/kept": b"1", "a/gone": b"1", "b/old": b"1", "c": b"file"}, compressed=compressed
    )
    second = layer(
        {"a/.wh.gone": b"", "b/.wh..wh..opq": b"", "b/new": b"2", "c/d": b"2"},
        compressed=compressed,
    )
    # A file of the first that is a directory in the second is hidden first.
    third = layer({"c/.wh.nothing": b""})
    found = _import(
        store, write(tmp_path / "image.tar", CONFIG, first, layer({".wh.c": b""}), second, third)
    )
    root = found.rootfs
    assert (root / "a" / "kept").read_bytes() == b"1"
    assert not (root / "a" / "gone").exists()
    assert [p.name for p in (root / "b").iterdir()] == ["new"]
    assert (root / "c" / "d").read_bytes() == b"2"
    assert (root / "a" / "kept").stat().st_uid == ACCOUNT
    assert found.command == ("/bin/tell", "one", "two")
    assert found.environment == {"PATH": "/bin", "COLOUR": "blue"}
    assert found.working_dir == "/work"
    assert "169.254.17.1" in (root / "etc" / "resolv.conf").read_text()
    assert store.find("tool") == found


def test_no_name_and_no_link_leads_out(store: ImageStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("mine")

    def device(header: tarfile.TarInfo) -> None:
        header.type, header.devmajor, header.devminor = tarfile.CHRTYPE, 1, 3

    def special(header: tarfile.TarInfo) -> None:
        header.type, header.mode = tarfile.REGTYPE, 0o6755

    evil = layer(
        {
            "../../../escaped": b"x",
            "/absolute": b"x",
            "out": ("symlink", str(outside)),
            "up": ("symlink", "../../../../../.." + str(outside)),
            "in": ("symlink", "/inside"),
            "inside/x": b"x",
            "in/through": b"x",
            "null": device,
            "suid": special,
            "etc": ("symlink", str(outside)),
        }
    )
    found = _import(store, oci_archive(tmp_path / "evil.tar", CONFIG, evil))
    assert [p.name for p in outside.iterdir()] == ["secret"]
    assert not any(
        p.name == "escaped" for p in tmp_path.rglob("escaped") if found.rootfs not in p.parents
    )
    assert (found.rootfs / "inside" / "through").read_bytes() == b"x"
    assert not (found.rootfs / "null").exists()
    assert (found.rootfs / "suid").stat().st_mode & 0o7000 == 0
    assert not (found.rootfs / "etc").is_symlink()


@pytest.mark.parametrize("target", ["{}", "../../../../../..{}"])
def test_a_file_behind_a_link_that_leads_out_is_refused(
    store: ImageStore, tmp_path: Path, target: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    evil = layer({"out": ("symlink", target.format(outside)), "out/planted": b"x"})
    with pytest.raises(AteError, match="cannot be unpacked"):
        _import(store, oci_archive(tmp_path / "evil.tar", CONFIG, evil))
    assert list(outside.iterdir()) == []
    assert store.list() == []


def test_a_directory_is_a_root_file_system(store: ImageStore, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "tool").write_text("#!/bin/sh")
    (tree / "etc").mkdir()
    (tree / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nactor:x:5:5::/:/bin/sh\n")
    found = _import(store, tree)
    assert (found.rootfs / "bin" / "tool").read_text() == "#!/bin/sh"
    names = [line.split(":")[0] for line in (found.rootfs / "etc/passwd").read_text().splitlines()]
    assert names.count("actor") == 1
    assert "nobody" in names
    assert (tree / "etc" / "passwd").read_text().count("nobody") == 0


def test_a_new_version_stands_beside_the_old_one(store: ImageStore, tmp_path: Path) -> None:
    first = _import(store, oci_archive(tmp_path / "1.tar", CONFIG, layer({"v": b"1"})))
    again = oci_archive(tmp_path / "2.tar", CONFIG, layer({"v": b"2"}))
    with pytest.raises(AteError, match="there is an image tool already"):
        _import(store, again)
    assert store.find("tool") == first
    second = _import(store, again, replace=True)
    assert store.find("tool") == second
    assert (first.rootfs / "v").read_bytes() == b"1"
    assert [each.name for each in store.list()] == ["tool"]
    assert store.version("tool", first.version) == first
    assert store.remove("tool")
    assert store.list() == []
    assert not store.remove("tool")
    assert (second.rootfs / "v").read_bytes() == b"2", "until it is collected"


def test_the_same_content_is_the_same_version(store: ImageStore, tmp_path: Path) -> None:
    source = oci_archive(tmp_path / "1.tar", CONFIG, layer({"v": b"1"}))
    first = _import(store, source)
    inode = first.rootfs.stat().st_ino
    assert _import(store, source, replace=True) == first
    assert _import(store, source, "other").version == first.version
    assert first.rootfs.stat().st_ino == inode
    for other in ({"v": b"2"}, {"v": b"1", "w": b""}, {"v": ("symlink", "1")}):
        changed = _import(
            store, oci_archive(tmp_path / "2.tar", CONFIG, layer(other)), replace=True
        )
        assert changed.version != first.version
    told = oci_archive(tmp_path / "3.tar", CONFIG | {"Cmd": ["three"]}, layer({"v": b"1"}))
    assert _import(store, told, replace=True).version != first.version


def test_what_nothing_names_any_more_is_collected(store: ImageStore, tmp_path: Path) -> None:
    versions = [
        _import(store, oci_archive(tmp_path / "i.tar", CONFIG, layer({"v": n})), replace=True)
        for n in (b"1", b"2", b"3", b"4")
    ]
    named, held = versions[0], store.hold(versions[1])
    assert held is not None
    assert store.collect(lambda: {named.version}) == [versions[2].version]
    assert [image.rootfs.exists() for image in versions] == [True, True, False, True]
    os.close(held)
    assert store.collect(lambda: {named.version}) == [versions[1].version]
    assert store.hold(versions[1]) is None
    store.remove("tool")
    assert set(store.collect(set)) == {named.version, versions[3].version}
    assert list((tmp_path / "images" / "versions").iterdir()) == []


def test_where_the_snapshots_cannot_be_asked_nothing_is_collected(
    store: ImageStore, tmp_path: Path
) -> None:
    image = _import(store, oci_archive(tmp_path / "i.tar", CONFIG, layer({"v": b"1"})))

    def unreachable() -> set[str]:
        raise OSError("the store does not answer")

    assert store.collect(unreachable) == [], "not asked: all have a name"
    store.remove("tool")
    with pytest.raises(OSError, match="does not answer"):
        store.collect(unreachable)
    held = store.hold(image)
    assert held is not None
    os.close(held)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"not a tar", "not a readable tar"), (layer({"x": b"y"}), "neither an OCI layout nor")],
)
def test_what_is_no_image_is_refused_and_leaves_nothing(
    store: ImageStore, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "bad.tar").write_bytes(content)
    with pytest.raises(AteError, match=said):
        _import(store, tmp_path / "bad.tar")
    assert store.list() == []
    assert list((tmp_path / "images").glob("*/*")) == []


def _spoilt(archive: Path, which: str, change: Callable[[bytes], bytes]) -> str:
    """Changes one blob of an OCI archive; its name."""
    with tarfile.open(archive) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    index = json.loads(files["index.json"])
    manifest_name = "blobs/" + index["manifests"][0]["digest"].replace(":", "/")
    manifest = json.loads(files[manifest_name])
    digest = {
        "manifest": index["manifests"][0]["digest"],
        "config": manifest["config"]["digest"],
        "layer": manifest["layers"][1]["digest"],
    }[which]
    name = "blobs/" + digest.replace(":", "/")
    files[name] = change(files[name])
    archive.write_bytes(layer(files))
    return digest


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[:-1], "bytes, its manifest says"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "is not what its name says"),
    ],
)
def test_a_blob_that_is_not_what_its_name_says_is_refused(
    store: ImageStore, tmp_path: Path, which: str, change: Callable[[bytes], bytes], said: str
) -> None:
    layers = (layer({"a": b"1"}), layer({"b": b"2"}))
    archive = oci_archive(tmp_path / "image.tar", CONFIG, *layers)
    digest = _spoilt(archive, which, change)
    with pytest.raises(AteError, match=f"blob {digest} .*{said}"):
        _import(store, archive)
    assert store.list() == []
    assert list((tmp_path / "images").glob("*/*")) == []


def test_a_digest_of_an_unknown_kind_is_refused(store: ImageStore, tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    layout.mkdir()
    (layout / "oci-layout").write_text("{}")
    (layout / "index.json").write_text('{"manifests": [{"digest": "md5:' + "0" * 32 + '"}]}')
    with pytest.raises(AteError, match=r"digest 'md5:0+'"):
        _import(store, layout)


def test_a_bad_name_is_refused(store: ImageStore, tmp_path: Path) -> None:
    with pytest.raises(AteError, match=r"image name '\.\./x'"):
        _import(store, tmp_path, "../x")


@pytest.fixture
async def box(store: ImageStore, tmp_path: Path) -> AsyncIterator[ActorBox]:
    program = runsc()

    def make(scratch: Path, prefix: str, threads: ThreadPoolExecutor) -> GvisorSandbox:
        return GvisorSandbox(program, prefix, Cgroups(prefix), threads, disk=scratch, images=store)

    async with actor_box(tmp_path / "box", make) as made:
        yield made


async def test_an_actor_runs_on_its_image(
    box: ActorBox, store: ImageStore, tmp_path: Path, tell: bytes
) -> None:
    _import(
        store, docker_archive(tmp_path / "i.tar", CONFIG, layer({"bin/tell": tell, "work/x": b""}))
    )
    network = await box.networks.acquire()
    launch = box.launch("unused", network=network)
    (plan,) = launch.containers
    bare = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    plan = replace(
        plan, image="tool", command=(), environment=bare, working_dir="/home/actor", binds=()
    )
    group = await box.sandbox.start(replace(launch, containers=(plan,)))
    await group.exited
    await group.stop(0)
    await box.networks.release(network)
    said = (launch.logs / "main.log").read_text().splitlines()
    assert said == ["/bin/tell one two /work blue /bin", f"writes {ACCOUNT}"]
    image = store.find("tool")
    assert image is not None
    assert not (image.rootfs / "etc" / "written").exists(), "what it writes is its own"


async def test_an_image_that_is_not_there_is_named(box: ActorBox) -> None:
    template = pb.ActorTemplate(containers=[pb.Container(name="main", image="nothing")])
    with pytest.raises(InvalidTemplateError, match=r"containers\[0\].image 'nothing'"):
        box.sandbox.check(template)


def _python_that_tells(proof: str) -> dict[str, bytes | tuple[str, str]]:
    """Where Python looks for its own: sources in an encoding that runs code when it is looked up."""
    library = sysconfig.get_paths()["stdlib"].lstrip("/")
    code = f"open({proof!r}, 'w').write('ran')\n".encode()
    odd = b"# -*- coding: evil -*-\n" + b"x\n" * 800
    names = ("gzip", "tarfile", "_compression", "runpy", "pathlib")
    return {
        **{f"{library}/{name}.py": odd for name in names},
        str(unpack.__file__).lstrip("/"): odd,
        f"{library}/encodings/__init__.py": b"",
        f"{library}/encodings/evil.py": code,
        f"{library}/traceback.py": code,
    }


def _breaks_the_reader() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        header = tarfile.TarInfo("x")
        header.pax_headers = {"path": "a\0b"}
        tar.addfile(header)
    return buffer.getvalue()


def test_nothing_that_an_image_brings_is_run(tmp_path: Path) -> None:
    rootfs = tmp_path / "rootfs"
    rootfs.mkdir()
    first = layer(_python_that_tells("/proof"))
    archive = oci_archive(tmp_path / "evil.tar", CONFIG, first, _breaks_the_reader())
    with pytest.raises(AteError, match=r"cannot be unpacked: .*: ValueError: embedded null") as e:
        fill_from(archive, rootfs)
    assert "Traceback" not in e.value.message
    assert list(rootfs.glob("**/traceback.py")) != [], "the first layer was unpacked"
    assert not (rootfs / "proof").exists()
    assert {path.lstat().st_uid for path in rootfs.rglob("*")} == {ACCOUNT}, "not as root"


def test_nothing_is_imported_from_the_directory_it_is_called_in(
    store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "where"
    where.mkdir()
    for name in ("gzip.py", "zstandard.py"):
        (where / name).write_text(f"open({str(tmp_path / 'proof')!r}, 'w')\nraise SystemExit(0)\n")
    monkeypatch.chdir(where)
    found = _import(store, oci_archive(tmp_path / "i.tar", CONFIG, layer({"x": b"1"})))
    assert (found.rootfs / "x").read_bytes() == b"1"
    assert not (tmp_path / "proof").exists()


def _file_for_directory(tree: Path) -> None:
    (tree / "etc").write_text("x")


def _directory_for_file(tree: Path) -> None:
    (tree / "etc" / "hosts").mkdir(parents=True)


def _odd_bytes(tree: Path) -> None:
    (tree / "etc").mkdir()
    (tree / "etc" / "passwd").write_bytes(b"m\xfcller:x:1:1::/:/bin/sh\n")


@pytest.mark.parametrize("make", [_file_for_directory, _directory_for_file, _odd_bytes])
def test_an_odd_etc_is_made_good(store: ImageStore, tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    tree = tmp_path / "tree"
    tree.mkdir()
    make(tree)
    found = _import(store, tree)
    assert "169.254.17.1" in (found.rootfs / "etc" / "resolv.conf").read_text()
    assert b"actor:" in (found.rootfs / "etc" / "passwd").read_bytes()


def test_layers_of_deep_directories_are_unpacked_or_refused(
    store: ImageStore, tmp_path: Path
) -> None:
    deep = layer({"/".join(["d"] * 400 + ["file"]): b"1"})
    found = _import(store, oci_archive(tmp_path / "deep.tar", CONFIG, deep))
    assert found.rootfs.joinpath(*["d"] * 400, "file").read_bytes() == b"1"
    deeper = layer({"/".join(["d"] * 1500 + ["file"]): b"1"})
    with pytest.raises(AteError, match="cannot be unpacked"):
        _import(store, oci_archive(tmp_path / "deeper.tar", CONFIG, deeper), "deeper")
    assert [each.name for each in store.list()] == ["tool"]
