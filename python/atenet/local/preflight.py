"""What must be true before anything is started: each check ends in a diagnosis a person can act on."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from atenet.errors import AteError
from atenet.local.layout import Layout

__all__ = ["check_machine", "prepare_home", "search_path"]

# Capability bits (linux/capability.h) that workers need, and what for.
_CAPABILITIES = {
    12: ("CAP_NET_ADMIN", "links and addresses for actors"),
    21: ("CAP_SYS_ADMIN", "network and mount namespaces"),
}
# Without nft nothing that an actor dials could be captured, so nothing is started.
_COMMANDS = {"bwrap": "bubblewrap", "nft": "nftables"}
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path() -> str:
    """PATH with the system directories that `su` leaves out of it."""
    own = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*own, *(d for d in _SBIN if d not in own)])


def check_machine() -> None:
    """Raises AteError: not Linux, a missing capability, a missing command."""
    if sys.platform != "linux":
        raise AteError("a local system needs Linux", hint="run it in a Linux virtual machine")
    missing = [what for bit, what in _CAPABILITIES.items() if not _effective() >> bit & 1]
    if missing:
        names = ", ".join(f"{name} ({use})" for name, use in missing)
        raise AteError(
            f"this user lacks {names}",
            hint=f"run it as root: sudo -E {' '.join(_command_line())}",
        )
    for command, package in _COMMANDS.items():
        if shutil.which(command, path=search_path()) is None:
            raise AteError(f"the command `{command}` is missing", hint=f"apt-get install {package}")


def _effective() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _command_line() -> list[str]:
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def prepare_home(layout: Layout) -> None:
    """Makes the state directory, or refuses one that is not ours or not usable."""
    for directory in layout.directories():
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise AteError(
                f"state directory is damaged: {error.filename} is not a directory",
                hint="move it away, or choose another --home",
            ) from error
        except OSError as error:
            raise AteError(
                f"cannot make {directory}: {error.strerror}", hint="choose another --home"
            ) from error
    _check_owner(layout.home)
    _check_store(layout)


def _check_owner(home: Path) -> None:
    """Keys live below it: it must be ours, and no one else may write there."""
    found = home.stat()
    if found.st_uid != os.geteuid():
        raise AteError(
            f"state directory {home} belongs to uid {found.st_uid}, not to {os.geteuid()}",
            hint="run as its owner, or choose another --home",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise AteError(f"state directory {home} is writable by others", hint=f"chmod go-w {home}")


def _check_store(layout: Layout) -> None:
    """A new store in the place of a lost one would know nothing of the actors that sleep here."""
    parts = (layout.store, layout.store.with_name(f"{layout.store.name}-wal"))
    if any(part.exists() and (part.is_dir() or part.stat().st_size) for part in parts):
        return
    if any(layout.snapshots.iterdir()):
        raise AteError(
            f"the store {layout.store} is missing or empty, but {layout.snapshots} has actors' snapshots",
            hint="restore it from a backup, or move the snapshots away to start without these actors",
        )
