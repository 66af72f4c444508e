"""From `--snapshots` to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from atenet.errors import AteError
from atenet.snapshots.interface import ObjectStore

__all__ = ["SNAPSHOTS_HELP", "check_location", "check_reachable", "open_objects"]

SNAPSHOTS_HELP = (
    "Where snapshots are kept, for the control plane and all its nodes the same: a directory (or"
    " file:///directory), or s3://bucket/prefix, with credentials, region and endpoint from the usual"
    " AWS_… variables."
)
_EXAMPLE = "e.g. /var/lib/ate/snapshots or s3://bucket/prefix"


def open_objects(location: str) -> ObjectStore:
    """Raises AteError naming --snapshots."""
    parts = _parsed(location)
    if parts.scheme == "s3":
        from atenet.snapshots.s3 import S3Objects  # brings a library that few need

        return S3Objects(parts.netloc, parts.path)
    from atenet.snapshots.filesystem import FileObjects

    root = Path(unquote(parts.path) if parts.scheme else location).absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise AteError(f"--snapshots {root}: {e.strerror}") from e
    return FileObjects(root)


def check_location(location: str) -> None:
    """For processes that are not where this one is. Raises AteError unless it is absolute."""
    parts = _parsed(location)
    if parts.scheme == "" and not Path(location).is_absolute():
        raise AteError(f"--snapshots {location!r} is not an absolute path", hint=_EXAMPLE)
    if parts.scheme == "s3" and not parts.netloc:
        raise AteError("--snapshots: an s3:// URL names its bucket", hint=_EXAMPLE)


def check_reachable(location: str) -> None:
    """Asks the store for its first object. Blocks. Raises AteError with what it says."""
    objects = open_objects(location)
    try:
        next(iter(objects.list()), None)
    except OSError as e:
        raise AteError(
            f"--snapshots {objects.url}: {e}",
            hint="credentials, region and endpoint come from AWS_… variables of this command",
        ) from e


def _parsed(location: str) -> SplitResult:
    parts = urlsplit(location)
    if "@" in parts.netloc:  # not repeated: it may be a secret
        raise AteError(
            "--snapshots: credentials do not belong into the URL",
            hint="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY hold them",
        )
    if parts.scheme not in ("", "file", "s3") or (parts.scheme == "file" and parts.netloc):
        raise AteError(
            f"--snapshots {location!r} is neither a directory nor an s3:// URL", hint=_EXAMPLE
        )
    return parts
