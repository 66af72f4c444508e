"""From `--snapshots` to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from atenet.errors import AteError
from atenet.snapshots.interface import ObjectStore

__all__ = ["SNAPSHOTS_HELP", "open_objects"]

SNAPSHOTS_HELP = (
    "Where snapshots are kept, for the control plane and all its nodes the same: a directory (or"
    " file:///directory), or s3://bucket/prefix, with credentials, region and endpoint from the usual"
    " AWS_… variables."
)


def open_objects(location: str) -> ObjectStore:
    """Raises AteError naming --snapshots."""
    parts = urlsplit(location)
    if parts.scheme == "s3":
        from atenet.snapshots.s3 import S3Objects  # brings a library that few need

        return S3Objects(parts.netloc, parts.path)
    if parts.scheme not in ("", "file") or parts.netloc:
        raise AteError(
            f"--snapshots {location!r} is neither a directory nor an s3:// URL",
            hint="e.g. /var/lib/ate/snapshots or s3://bucket/prefix",
        )
    from atenet.snapshots.filesystem import FileObjects

    root = Path(unquote(parts.path) if parts.scheme else location).absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise AteError(f"--snapshots {root}: {e.strerror}") from e
    return FileObjects(root)
