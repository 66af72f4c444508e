from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.real_node import given
from tests.real_node.archive import Blobs
from tests.real_node.images import NAMES, reference

OURS = {reference(name) for name in NAMES}


def layout(path: Path, names: list[str]) -> Path:
    """As buildah pushes it into an OCI layout; `names` are whole references."""
    layer = path.with_name("layer")
    layer.write_bytes(b"what is in it")
    blobs = Blobs(path)
    for name in names:
        blobs.image(name, {}, [layer])
    blobs.close()
    return path


def written(path: Path, files: dict[str, Any], prefix: str = "") -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            header = tarfile.TarInfo(f"{prefix}{name}")
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    return path


def read(path: Path, name: str) -> Any:
    with tarfile.open(path) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return json.load(file)


def test_images_of_an_oci_layout_get_the_names_of_the_check(tmp_path: Path) -> None:
    built = [f"registry.example:5000/a/{name}:1.2" for name in NAMES]
    source = layout(tmp_path / "built.tar", [*built, "registry.example/other:1"])
    assert not given.missing(source)
    found = read(given.renamed(source, tmp_path / "renamed.tar"), "index.json")["manifests"]
    names = [each["annotations"]["io.containerd.image.name"] for each in found]
    assert {*names} == {*OURS, "registry.example/other:1"}
    with tarfile.open(source) as old, tarfile.open(tmp_path / "renamed.tar") as new:
        assert old.getnames() == new.getnames()
        blobs = [each for each in old.getnames() if each.startswith("blobs/")]
        assert [content(old, each) for each in blobs] == [content(new, each) for each in blobs]


def content(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def test_and_those_that_docker_saved(tmp_path: Path) -> None:
    """Its older format, whose files may begin with ./, and the newer one, which is both."""
    tags = [f"localhost/atenet/{name}:0.1.0" for name in NAMES]
    manifest = [{"Config": "c.json", "RepoTags": [tag], "Layers": []} for tag in tags]
    index = {
        "manifests": [
            {
                "digest": "sha256:0",
                "annotations": {
                    "io.containerd.image.name": tag,
                    "org.opencontainers.image.ref.name": "0.1.0",
                },
            }
            for tag in tags
        ]
    }
    older = {"manifest.json": manifest, "repositories": {"localhost/atenet/base": {}}}
    newer = {"index.json": index, "manifest.json": manifest}
    for number, (files, prefix) in enumerate([(older, "./"), (newer, "")]):
        source = written(tmp_path / f"{number}.tar", files, prefix)
        assert not given.missing(source)
        target = given.renamed(source, tmp_path / f"{number}.renamed.tar")
        found = read(target, f"{prefix}manifest.json")
        assert {tag for each in found for tag in each["RepoTags"]} == OURS
        with tarfile.open(target) as tar:
            assert "./repositories" not in tar.getnames()
    found = read(tmp_path / "1.renamed.tar", "index.json")["manifests"]
    assert {each["annotations"]["org.opencontainers.image.ref.name"] for each in found} == OURS


def test_an_archive_that_lacks_some_says_which(tmp_path: Path) -> None:
    source = layout(tmp_path / "built.tar", [f"r/{name}:1" for name in NAMES if name != "atelet"])
    assert given.missing(source) == {"atelet"}


@pytest.mark.parametrize("files", [None, {"else.txt": b""}, {"index.json": b"{"}])
def test_what_is_no_archive_of_images_is_named(
    tmp_path: Path, files: dict[str, bytes] | None
) -> None:
    path = tmp_path / "built.tar"
    if files is not None:
        written(path, files)
    with pytest.raises(ValueError, match=r"built\.tar is no archive of images"):
        given.missing(path)
