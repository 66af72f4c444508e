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
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from atenet.ateapi.store import Store
from atenet.proto import ateapi_pb2 as pb

__all__ = ["SnapshotStore", "sweep"]

_log = logging.getLogger(__name__)
_SWEEP = 64


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


async def sweep(store: Store, snapshots: SnapshotStore) -> None:
    """Removes the snapshots that committed changes left behind; what fails stays for later."""
    uris = await store.read(lambda tx: tx.garbage.page(_SWEEP))
    for uri in uris:
        try:
            await asyncio.to_thread(snapshots.remove, uri)
        except OSError as e:
            _log.warning("cannot remove a snapshot", extra={"uri": uri, "error": str(e)})
            continue
        await store.write(lambda tx, gone=uri: tx.garbage.forget(gone))  # type: ignore[misc]
