"""Objects in S3, or in what speaks its protocol, through obstore.

Large objects go up in parts; one whose upload is cut is no object. Credentials, region and endpoint
are AWS_… variables (AWS_ENDPOINT_URL and AWS_ALLOW_HTTP=true for a server of one's own), instance
metadata, or a web identity, as obstore finds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import IO, Any, cast

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from atenet.errors import AteError
from atenet.snapshots.interface import StoredObject

__all__ = ["S3Objects"]

# How long a server may say nothing, and what a whole object may take: memory has no bound of its own.
_SILENCE = timedelta(seconds=60)
_WHOLE = timedelta(hours=24)
_PART_BYTES = 8 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_MANIFEST = "manifest.json"


class S3Objects:
    """Every method is an OSError when the store does not do it."""

    def __init__(self, bucket: str, prefix: str, *, silence: timedelta = _SILENCE) -> None:
        """`silence`: how long the server may say nothing within a request. Raises AteError."""
        if not bucket:
            raise AteError("--snapshots: an s3:// URL names its bucket", hint="s3://bucket/prefix")
        prefix = prefix.strip("/")
        self.url = f"s3://{bucket}" + (f"/{prefix}" if prefix else "")
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "connect_timeout": "5s",
                    # Of these two, `timeout` runs until an answer's body has been read to its end.
                    "timeout": _WHOLE,
                    "read_timeout": silence,
                    # Options of ours replace those that it would read from the environment.
                    "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
                },
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
            )
        except BaseError as e:
            raise AteError(f"--snapshots {self.url}: {_words(e)}") from e

    def put(self, key: str, content: bytes) -> None:
        with _as_os_errors(key, writing=True):
            obstore.put(self._store, key, content)

    def get(self, key: str) -> bytes:
        with _as_os_errors(key):
            return bytes(obstore.get(self._store, key).bytes())

    @contextmanager
    def writer(self, key: str) -> Iterator[IO[bytes]]:
        try:
            with _as_os_errors(key, writing=True):
                opened = obstore.open_writer(self._store, key, buffer_size=_PART_BYTES)
                yield cast("IO[bytes]", opened)
                opened.close()
        except BaseException:
            with suppress(BaseError, OSError):
                obstore.delete(self._store, key)
            raise

    @contextmanager
    def reader(self, key: str) -> Iterator[IO[bytes]]:
        with _as_os_errors(key):
            stream = obstore.get(self._store, key).stream(min_chunk_size=_READ_BYTES)
            yield cast("IO[bytes]", _Stream(iter(stream)))

    def exists(self, key: str) -> bool:
        try:
            with _as_os_errors(key):
                obstore.head(self._store, key)
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        with _as_os_errors(prefix):
            for batch in obstore.list(self._store, prefix=prefix or None):
                for found in batch:
                    when = found["last_modified"].timestamp()
                    yield StoredObject(found["path"], found["size"], when)

    def remove(self, prefix: str) -> None:
        keys = [found.key for found in self.list(f"{prefix}/")]
        with _as_os_errors(prefix):
            # First what makes it a snapshot: a part of one must never be taken for one.
            for key in sorted(keys, key=lambda k: not k.endswith(_MANIFEST)):
                with suppress(FileNotFoundError, NotFoundError):
                    obstore.delete(self._store, key)


class _Stream:
    """The pieces of an answer, read as a file is."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            whole = b"".join([self._rest, *map(bytes, self._pieces)])
            self._rest = b""
            return whole
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = bytes(piece)
        given, self._rest = self._rest[:size], self._rest[size:]
        return given


@contextmanager
def _as_os_errors(key: str, *, writing: bool = False) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotFoundError) as e:
        if writing:  # the bucket, then
            raise OSError(f"object store: {_words(e)}") from e
        raise FileNotFoundError(f"{key} is not in the store") from e
    except BaseError as e:
        raise OSError(f"object store: {_words(e)}") from e


def _words(error: Exception) -> str:
    """On one line, without the endless detail of a debug print."""
    return " ".join(str(error).partition("Debug source:")[0].split())[:400]
