"""Where runsc and its workers keep what lasts as long as a sandbox: in memory, where there is a place for that.

On a disk, the dozen small files of an activation cost it 10 to 20 ms: a file system looks long for
numbers of files that were not used a moment ago.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["STATES", "states"]

# In this order: /run of a container is often on its disk.
_PLACES = ("/run", "/dev/shm")  # noqa: S108 - what is made there is for its owner alone


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
