"""The root directory of containers without an image: the host's programs, a system of its own.

It is made once for a worker and never written to by an actor: runsc keeps what is written above it
in the sandbox's memory, where a checkpoint finds it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from atenet.errors import AteError
from atenet.worker.network import GATEWAY_ADDRESS
from atenet.worker.sandbox import account
from atenet.worker.sandbox.bubblewrap import SYSTEM_FILES, SystemView
from atenet.worker.sandbox.gvisor.bundle import ACCOUNT, HOSTNAME
from atenet.worker.sandbox.plan import Bind

__all__ = ["MOUNT_POINTS", "build", "etc_files", "place", "system_binds"]

MOUNT_POINTS = ("proc", "dev", "sys", "usr", "run/ate")
_OPEN = ("tmp", "var/tmp", "home/actor")


def place(memory: Path, disk: Path) -> Path:
    """Below which of these directories to make it: in memory, unless that is mounted noexec.

    runsc remounts it read-only, in a user namespace and without noexec, which the kernel does not let
    it take away there. A pod's /dev/shm has it, and on many a machine /run. Raises AteError.
    """
    for directory in (memory, disk):
        if not os.statvfs(directory).f_flag & os.ST_NOEXEC:
            return directory
    raise AteError(
        f"{memory} and {disk} are both mounted noexec: gVisor takes no root directory from there",
        hint="give the worker a --state-dir on a file system that is mounted without noexec",
    )


def build(root: Path, view: SystemView) -> None:
    """Makes it anew. Blocks for some ms. Raises OSError."""
    shutil.rmtree(root, ignore_errors=True)
    for directory in (*MOUNT_POINTS, *_OPEN, "etc"):
        (root / directory).mkdir(mode=0o755, parents=True)
    for directory in _OPEN:
        (root / directory).chmod(0o1777)
    for path, target in view.links:
        (root / path.lstrip("/")).symlink_to(target)
    for path in view.directories:
        (root / path.lstrip("/")).mkdir(exist_ok=True)
    for name in SYSTEM_FILES:
        _copy(Path(name), root / name.lstrip("/"))
    for name, text in etc_files().items():
        (root / "etc" / name).write_text(text)


def etc_files() -> dict[str, str]:
    """The same for every actor, since saved memory may have read them."""
    return account.files_for(HOSTNAME, ACCOUNT, GATEWAY_ADDRESS)


def system_binds(view: SystemView) -> tuple[Bind, ...]:
    return tuple(Bind(Path(path), path, read_only=True) for path in view.directories)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    elif source.exists():
        shutil.copy2(source, target)
