"""Where runsc and its workers keep what lasts as long as a sandbox: in memory, where there is a place for that.

On a disk, the dozen small files of an activation cost it 10 to 20 ms: a file system looks long for
numbers of files that were not used a moment ago.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from atenet.errors import AteError

__all__ = ["STATES", "make_owned", "owned", "states"]

# In this order: /run of a container is often on its disk.
_PLACES = ("/run", "/dev/shm")  # noqa: S108 - everybody may write there: make_owned sees to it


def states(mounts: Path = Path("/proc/mounts")) -> Path:
    """The directory for all workers of this machine, by which mounts there are."""
    try:
        found = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        found = []
    in_memory = {fields[1] for fields in found if len(fields) > 2 and fields[2] == "tmpfs"}
    place = next((place for place in _PLACES if place in in_memory), _PLACES[0])
    return Path(place) / "atenet"


# Below it, directories that are named by their worker's prefix.
STATES = states()


def owned(directory: Path = STATES) -> bool:
    """Whether it is there and nobody but us can change what is in it. In /dev/shm anybody may have made it, or a
    link of its name, and would say what a sandbox mounts and what is removed."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    ours = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and ours


def make_owned(directory: Path = STATES) -> None:
    """Makes it where it is missing. Raises AteError: somebody else did."""
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        pass
    except OSError as error:
        raise AteError(
            f"{directory}, for the state of gVisor's sandboxes, cannot be made: {error.strerror}",
            hint="a worker of the gvisor class needs root",
        ) from error
    if not owned(directory):
        raise AteError(
            f"{directory}, for the state of gVisor's sandboxes, is not a directory that only we can change",
            hint=f"somebody else of this machine made it: look at it (ls -ld {directory}), then remove it as root",
        )
