"""A page server's TLS, read again when its files change."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from atenet.errors import AteError
from atenet.identity import files

__all__ = ["ServerContext"]

_log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int], ...]


class ServerContext:
    """`credential`: key and chain; `roots`: what clients must chain to, None: they show no certificate.

    Raises AteError when the files are of no use at first; later the last good ones stay.
    """

    def __init__(self, credential: Path, roots: Path | None = None) -> None:
        self._credential = credential
        self._roots = roots
        self._stamp: _Stamp = ()
        self._context: ssl.SSLContext | None = None
        self.current()

    def current(self) -> ssl.SSLContext:
        """For the next connection."""
        try:
            stamp = self._look()
            if stamp != self._stamp or self._context is None:
                self._context = self._load()
                self._stamp = stamp
        except (OSError, AteError) as error:
            if self._context is None:
                raise AteError(f"cannot use {self._credential} for pages: {error}") from error
            _log.warning("keeping the old certificate", extra={"error": str(error)})
        return self._context

    def _look(self) -> _Stamp:
        paths = [self._credential] + ([] if self._roots is None else [self._roots])
        found = [path.stat() for path in paths]
        return tuple((each.st_ino, each.st_mtime_ns) for each in found)

    def _load(self) -> ssl.SSLContext:
        files.read_private(self._credential)  # refuses a loose mode by name
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._credential)
        if self._roots is not None:
            context.load_verify_locations(self._roots)
            context.verify_mode = ssl.CERT_REQUIRED
            # A resumed session would skip the look at the client's certificate.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context
