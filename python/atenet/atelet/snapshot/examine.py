"""What of a snapshot is as it was written: its files, its memory."""

from __future__ import annotations

from dataclasses import dataclass

from atenet.atelet.snapshot.manifest import SnapshotDamagedError, SnapshotMissingError
from atenet.atelet.snapshot.store import SnapshotStore
from atenet.gvisor import MemoryNeeds

__all__ = ["Examined", "examine"]


@dataclass(frozen=True)
class Examined:
    """`files_good`: all durable directories verify; `whole`: and the memory, if there is any; `problem`:
    the first thing that does not, or "". `created`: RFC 3339, or "" without a manifest."""

    files_good: bool
    whole: bool
    problem: str = ""
    created: str = ""
    template_uid: str = ""
    needs: MemoryNeeds | None = None


def examine(store: SnapshotStore, uri: str) -> Examined:
    """Reads all of it, and blocks. Raises OSError when the store does not answer."""
    try:
        manifest = store.manifest(uri)
    except (SnapshotDamagedError, SnapshotMissingError) as e:
        return Examined(files_good=False, whole=False, problem=e.message)
    problem, files_good = "", True
    entries = [(entry.file, entry.sha256, True) for entry in manifest.volumes]
    if manifest.memory is not None:
        entries.append((manifest.memory.file, manifest.memory.sha256, False))
    for file, digest, is_volume in entries:
        try:
            store.compare(uri, file, digest)
        except SnapshotDamagedError as e:
            problem = problem or e.message
            files_good = files_good and not is_volume
    return Examined(
        files_good=files_good,
        whole=not problem,
        problem=problem,
        created=manifest.created,
        template_uid=manifest.template_uid,
        needs=None if manifest.memory is None else manifest.memory.needs,
    )
