"""The snapshot store as the control plane sees it: names, and removal.

Node agents write and read snapshots; only what no record names any more is removed here, and those are
read that an actor could not start from.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from atenet.ateapi.store import BusyError, Store, Transaction
from atenet.atelet import snapshot as stored
from atenet.atelet.snapshot.examine import Examined, examine
from atenet.proto import ateapi_pb2 as pb
from atenet.snapshots import ObjectStore, SnapshotUris

__all__ = ["SnapshotStore", "Sweeper"]

_log = logging.getLogger(__name__)
_BATCH = 64
_AGAIN_SECONDS = 60.0


class SnapshotStore:
    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._uris = SnapshotUris(objects.url)
        self._stored = stored.SnapshotStore(objects)

    def new_uri(self, meta: pb.ResourceMetadata) -> str:
        """A name that no snapshot has had."""
        return self._uris.new(meta.atespace, meta.uid)

    def examine(self, uri: str) -> Examined:
        """Reads all of it, and blocks. Raises OSError."""
        return examine(self._stored, uri)

    def remove(self, uri: str) -> None:
        """Removes the snapshot; an absent one is fine. Blocks.

        Raises OSError when it cannot be removed.
        """
        key = self._uris.key(uri)
        if key is None:
            _log.warning("not a snapshot of this store, left alone", extra={"uri": uri})
            return
        self._objects.remove(key)


class Sweeper:
    """Removes the snapshots that committed changes left behind, beside everything else."""

    def __init__(self, store: Store, snapshots: SnapshotStore) -> None:
        self._store = store
        self._snapshots = snapshots
        self._due = asyncio.Event()
        self._due.set()  # what an earlier run left

    def wake(self) -> None:
        """A change left some garbage."""
        self._due.set()

    async def run(self) -> None:
        """Sweeps for ever: when woken, and now and then for what could not be removed before."""
        while True:
            # Not `wait_for`: on Python 3.11 a cancellation that meets the wake-up is lost in it, and
            # whoever stops this waits for ever.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_SECONDS):
                    await self._due.wait()
            self._due.clear()
            try:
                await self.sweep()
            except BusyError as e:
                _log.warning("the store is busy", extra={"error": str(e)})
            except Exception:  # noqa: BLE001 - one bad sweep must not end all sweeping
                _log.exception("a sweep failed")

    async def sweep(self) -> None:
        """Until nothing is left, or nothing of a batch could be removed."""
        while uris := await self._store.read(lambda tx: tx.garbage.some(_BATCH)):
            removed = [uri for uri in uris if await self._removed(uri)]
            if not removed:
                return
            await self._store.write(_forget(removed))

    async def _removed(self, uri: str) -> bool:
        try:
            await asyncio.to_thread(self._snapshots.remove, uri)
        except OSError as e:
            _log.warning("cannot remove a snapshot", extra={"uri": uri, "error": str(e)})
            return False
        return True


def _forget(uris: list[str]) -> Callable[[Transaction], None]:
    def change(tx: Transaction) -> None:
        for uri in uris:
            tx.garbage.forget(uri)

    return change
