"""The snapshot store as the control plane sees it: names, and removal.

`file://<root>/<atespace>/<actor uid>/<snapshot id>`, one directory each. Node agents write and
read them; only what no record names any more is removed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from atenet.ateapi.store import BusyError, Store, Transaction
from atenet.proto import ateapi_pb2 as pb

__all__ = ["SnapshotStore", "Sweeper"]

_log = logging.getLogger(__name__)
_BATCH = 64
_AGAIN_SECONDS = 60.0


class SnapshotStore:
    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def new_uri(self, meta: pb.ResourceMetadata) -> str:
        """A name that no snapshot has had."""
        path = self.root / meta.atespace / meta.uid / uuid.uuid4().hex
        return f"file://{quote(str(path))}"

    def path_of(self, uri: str) -> Path | None:
        """The snapshot's directory; None unless the URI has the shape that `new_uri` gives."""
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc:
            return None
        path = Path(unquote(parts.path))
        inside = path.is_relative_to(self.root) and ".." not in path.parts
        return path if inside and len(path.relative_to(self.root).parts) == 3 else None

    def remove(self, uri: str) -> None:
        """Removes the snapshot and what becomes empty above it; an absent one is fine.

        Raises OSError when the files cannot be removed.
        """
        path = self.path_of(uri)
        if path is None:
            _log.warning("not a snapshot of this store, left alone", extra={"uri": uri})
            return
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)
        for parent in (path.parent, path.parent.parent):
            with contextlib.suppress(OSError):
                parent.rmdir()


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
