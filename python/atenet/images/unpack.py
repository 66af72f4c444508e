"""Unpacks layers into a root directory that it cannot leave: `python -I -m atenet.images.unpack ROOT
ACCOUNT LAYER...`.

A process of its own, which shuts itself into ROOT and becomes ACCOUNT, whose ROOT is, before it
reads the first name: whatever links a layer makes, they lead nowhere else. From then on it imports
nothing, for what it would find is what the layers brought. Layers are opened before that. Devices
and special bits are left out, and so are owners.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import zstandard

__all__ = ["unpack_layer"]

_HIDE, _OPAQUE = ".wh.", ".wh..wh..opq"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpack_layer(layer: IO[bytes]) -> None:
    """Into the process's root directory. Raises tarfile.TarError and OSError."""
    directories: list[tuple[Path, int]] = []
    with tarfile.open(fileobj=_plain(layer), mode="r|") as tar:
        for member in tar:
            path = Path("/" + os.path.normpath("/" + member.name).lstrip("/"))
            if path.name == _OPAQUE:
                _empty(path.parent)
            elif path.name.startswith(_HIDE):
                _delete(path.with_name(path.name.removeprefix(_HIDE)))
            elif path.name:
                _member(tar, member, path, directories)
    for path, mode in reversed(directories):
        with suppress(FileNotFoundError):
            path.chmod(mode)


def _plain(layer: IO[bytes]) -> IO[bytes]:
    start = layer.read(4)
    layer.seek(0)
    if start.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=layer))
    if start == _ZSTD:
        return zstandard.ZstdDecompressor().stream_reader(layer)
    return layer


def _member(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    path: Path,
    directories: list[tuple[Path, int]],
) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    mode = stat.S_IMODE(member.mode) & ~(stat.S_ISUID | stat.S_ISGID)
    if member.isdir():
        if path.is_symlink() or not path.is_dir():
            _delete(path)
            path.mkdir()
        directories.append((path, mode | stat.S_IRWXU))
    elif member.issym():
        _delete(path)
        path.symlink_to(member.linkname)
    elif member.islnk():
        _delete(path)
        path.hardlink_to("/" + member.linkname.lstrip("/"))
    elif member.isreg():
        _delete(path)
        source = tar.extractfile(member)
        assert source is not None
        with path.open("xb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        path.chmod(mode)
        os.utime(path, (member.mtime, member.mtime))


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _empty(directory: Path) -> None:
    with suppress(FileNotFoundError):
        for path in list(directory.iterdir()):
            _delete(path)


def main() -> None:
    root, account, *layers = sys.argv[1:]
    opened = [Path(layer).open("rb") for layer in layers]  # noqa: SIM115 - until the process ends
    _shut_in(root, int(account))
    for layer in opened:
        try:
            unpack_layer(layer)
        except BaseException as e:  # noqa: BLE001 - nothing may get past
            # Not left to the interpreter: to print a traceback it reads sources, by their names.
            what = f"{layer.name}: {type(e).__name__}: {e}\n"
            os.write(2, what.encode(errors="backslashreplace"))
            os._exit(1)


def _shut_in(root: str, account: int) -> None:
    os.chroot(root)
    os.chdir("/")
    for finders in (sys.meta_path, sys.path, sys.path_hooks):
        finders.clear()
    sys.path_importer_cache.clear()
    os.setgroups([])
    os.setresgid(account, account, account)
    os.setresuid(account, account, account)
    os.umask(0o022)


if __name__ == "__main__":
    main()
