"""An archive of images that a builder made, as `docker save` or an OCI layout has it, under the names of the check."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.real_node.images import NAMES, reference

# What `ctr` goes by, then what OCI layouts of one image have: of docker that is the tag alone.
_NAMED = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


def missing(archive: Path) -> set[str]:
    """Images that the check needs and the archive has not. Raises ValueError: it is none."""
    try:
        with tarfile.open(archive) as tar:
            found = {_name(each) for part in _parts(tar).values() for each in _references(part)}
    except (OSError, tarfile.TarError, ValueError) as error:
        raise ValueError(f"{archive} is no archive of images: {error}") from error
    return set(NAMES) - found


def renamed(archive: Path, target: Path) -> Path:
    """A copy that containerd imports under the check's own names."""
    with tarfile.open(archive) as source, tarfile.open(target, "w") as copy:
        parts = _parts(source)
        for member in source:
            part = parts.get(_place(member))
            if part is not None:
                data = json.dumps(_changed(part)).encode()
                member.size = len(data)
                copy.addfile(member, io.BytesIO(data))
            elif _place(member) != "repositories":  # of docker's oldest format: names again
                copy.addfile(member, source.extractfile(member) if member.isfile() else None)
    return target


def _parts(tar: tarfile.TarFile) -> dict[str, Any]:
    """The files that say what the images are called: of an OCI layout, of docker, or both."""
    found = {}
    for member in tar:
        if _place(member) in ("index.json", "manifest.json"):
            file = tar.extractfile(member)
            assert file is not None
            found[_place(member)] = json.load(file)
    if not found:
        raise ValueError("it has neither index.json nor manifest.json")
    return found


def _place(member: tarfile.TarInfo) -> str:
    return member.name.removeprefix("./")


def _references(part: Any) -> Iterator[str]:
    for each in _images(part):
        if "RepoTags" in each:
            yield from each["RepoTags"] or []
        else:
            yield _annotated(each)


def _images(part: Any) -> list[dict[str, Any]]:
    return part if isinstance(part, list) else part["manifests"]


def _annotated(image: dict[str, Any]) -> str:
    annotations = image.get("annotations") or {}
    return next((annotations[key] for key in _NAMED if key in annotations), "")


def _changed(part: Any) -> Any:
    for each in _images(part):
        if "RepoTags" in each:
            each["RepoTags"] = [_own(reference) for reference in each["RepoTags"] or []]
        else:
            own = _own(_annotated(each))
            each["annotations"] = {**(each.get("annotations") or {}), **dict.fromkeys(_NAMED, own)}
    return part


def _own(found: str) -> str:
    return reference(_name(found)) if _name(found) in NAMES else found


def _name(found: str) -> str:
    """`registry:5000/path/ateapi:1` -> `ateapi`."""
    return found.rpartition("/")[2].partition(":")[0]
