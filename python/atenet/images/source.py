"""Where an image comes from: an OCI layout or a docker archive (a tar or a directory), or a directory
that is a root file system itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from atenet import trees
from atenet.errors import AteError
from atenet.worker.sandbox.account import hand_over
from atenet.worker.sandbox.gvisor.bundle import ACCOUNT
from atenet.worker.sandbox.gvisor.rootfs import etc_files

__all__ = ["fill_from"]

_DIGEST = re.compile(r"(sha256|sha512):([0-9a-f]{64,128})")
_AGAIN = "the archive is damaged or was altered: save or copy it again"
_PLAIN: dict[str, object] = {"command": [], "environment": {}, "working_dir": "/"}


def fill_from(source: Path, rootfs: Path) -> dict[str, object]:
    """Fills the directory; returns the image's facts. Raises AteError naming the source."""
    if source.is_dir():
        if (source / "oci-layout").exists() or (source / "manifest.json").exists():
            facts = _from_layout(source, rootfs, source)
        else:
            facts = _from_directory(source, rootfs)
    elif source.is_file():
        with tempfile.TemporaryDirectory(dir=rootfs.parent, prefix="unpacked-") as scratch:
            try:
                _open_archive(source, Path(scratch))
            except (tarfile.TarError, OSError, ValueError, EOFError, zlib.error) as e:
                raise AteError(f"{source} is not a readable tar: {e}") from e
            facts = _from_layout(Path(scratch), rootfs, source)
    else:
        raise AteError(f"{source} does not exist")
    _settle(rootfs)
    return facts


def _open_archive(source: Path, into: Path) -> None:
    """Regular files only, by their names, never through a link."""
    with tarfile.open(source) as tar:
        for member in tar:
            parts = Path(member.name).parts
            if not member.isreg() or ".." in parts or member.name.startswith("/"):
                continue
            target = into.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            found = tar.extractfile(member)
            assert found is not None
            with target.open("wb") as file:
                while piece := found.read(1 << 20):
                    file.write(piece)


def _from_layout(layout: Path, rootfs: Path, source: Path) -> dict[str, object]:
    try:
        if (layout / "index.json").exists():
            config, layers = _oci(layout)
        else:
            config, layers = _docker(layout)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as e:
        raise AteError(
            f"{source} is neither an OCI layout nor a docker archive: {e!r}",
            hint="e.g. what `docker save` or `skopeo copy … oci-archive:` writes, or a directory",
        ) from e
    _unpack(rootfs, layers, source)
    given = config.get("config") or {}
    command = [*(given.get("Entrypoint") or []), *(given.get("Cmd") or [])]
    pairs = (variable.partition("=") for variable in given.get("Env") or [])
    return {
        "command": command,
        "environment": {name: value for name, _, value in pairs},
        "working_dir": given.get("WorkingDir") or "/",
    }


def _oci(layout: Path) -> tuple[dict[str, Any], list[Path]]:
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(_blob(layout, index["manifests"][0]).read_text())
    if "manifests" in manifest:  # one more index, by platform
        manifest = json.loads(_blob(layout, _for_this_machine(manifest["manifests"])).read_text())
    config = json.loads(_blob(layout, manifest["config"]).read_text())
    return config, [_blob(layout, layer) for layer in manifest["layers"]]


def _for_this_machine(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    import platform

    name = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    found = [m for m in manifests if m.get("platform", {}).get("architecture") == name]
    return found[0]


def _blob(layout: Path, descriptor: Mapping[str, Any]) -> Path:
    """Its file, whose content is what its name says. Raises AteError naming it."""
    digest = str(descriptor["digest"])
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ValueError(f"digest {digest!r}")
    path = layout.joinpath("blobs", *found.groups())
    size = descriptor.get("size")
    if size is not None and path.stat().st_size != size:
        raise AteError(
            f"blob {digest} has {path.stat().st_size} bytes, its manifest says {size}", hint=_AGAIN
        )
    _compare(path, *found.groups())
    return path


def _compare(path: Path, algorithm: str, wanted: str) -> None:
    with path.open("rb") as file:
        here = hashlib.file_digest(file, algorithm).hexdigest()
    if here != wanted:
        raise AteError(
            f"blob {algorithm}:{wanted} is not what its name says: its digest is {here}",
            hint=_AGAIN,
        )


def _docker(layout: Path) -> tuple[dict[str, Any], list[Path]]:
    (manifest, *_) = json.loads((layout / "manifest.json").read_text())
    names = [str(manifest["Config"]), *map(str, manifest["Layers"])]
    for name in names:
        if ".." in Path(name).parts or name.startswith("/"):
            raise ValueError(f"file name {name!r}")
        # Newer ones name files by what they hold, as OCI layouts do.
        if Path(name).parts[:2] == ("blobs", "sha256"):
            _compare(layout / name, "sha256", Path(name).name)
    config = json.loads((layout / names[0]).read_text())
    return config, [layout / name for name in names[1:]]


def _from_directory(source: Path, rootfs: Path) -> dict[str, object]:
    """A copy, through the same door as layers."""
    with tempfile.TemporaryDirectory(dir=rootfs.parent, prefix="packed-") as scratch:
        layer = Path(scratch) / "layer.tar"
        with tarfile.open(layer, "w") as tar:
            tar.add(source, arcname=".")
        _unpack(rootfs, [layer], source)
    return dict(_PLAIN)


def _unpack(rootfs: Path, layers: list[Path], source: Path) -> None:
    # -I: nothing is imported from the directory that this happens to be called in.
    words = [sys.executable, "-I", "-m", "atenet.images.unpack", str(rootfs), str(ACCOUNT)]
    os.chown(rootfs, ACCOUNT, ACCOUNT)
    done = subprocess.run(
        [*words, *map(str, layers)], capture_output=True, text=True, errors="replace", check=False
    )
    os.chown(rootfs, 0, 0)  # not handed over before it is settled
    if done.returncode:
        raise AteError(f"{source} cannot be unpacked: {' '.join(done.stderr.split())[-400:]}")


def _settle(rootfs: Path) -> None:
    """What every actor's system has: its resolver and its names, and places to mount on. All of it is
    the actor's: what it writes goes to memory, never here."""
    etc = rootfs / "etc"
    if etc.is_symlink() or not etc.is_dir():
        trees.remove(etc)
    for directory in ("etc", "proc", "dev", "sys", "run", "tmp"):
        path = rootfs / directory
        with suppress(FileExistsError):
            path.mkdir(mode=0o755)
    files = etc_files()
    for name in ("hostname", "hosts", "resolv.conf"):
        trees.remove(etc / name)
        (etc / name).write_text(files[name])
    for name in ("passwd", "group", "nsswitch.conf"):
        _complete(etc / name, files[name])
    hand_over(rootfs, ACCOUNT)


def _complete(path: Path, wanted: str) -> None:
    """Adds the lines whose first field is not there yet."""
    if path.is_symlink() or not path.is_file():
        trees.remove(path)
    present = path.read_text(errors="surrogateescape") if path.exists() else ""
    names = {line.partition(":")[0] for line in present.splitlines()}
    missing = [line for line in wanted.splitlines() if line.partition(":")[0] not in names]
    whole = present if present.endswith("\n") or not present else present + "\n"
    whole += "".join(f"{line}\n" for line in missing)
    path.write_text(whole, errors="surrogateescape")
