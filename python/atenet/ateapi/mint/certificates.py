"""Actors' certificates: the key of the request, one URI name, an hour."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from atenet.ateapi.failure import CallError, invalid
from atenet.errors import AteError
from atenet.identity import Authority, Usage
from atenet.identity.authority import BACKDATE

__all__ = ["CertificateMint", "requested_key"]

_log = logging.getLogger(__name__)
_LIFETIME = timedelta(hours=1)
_FIELD = "certificate_signing_request"
_MAX_REQUEST = 16384


class CertificateMint:
    """Issues from the actor-identity authority, whose files may be replaced while it runs."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises AteError naming the file that cannot be used."""
        self._files = (certificate, key)
        self._stamps = self._stat()
        self._authority = Authority.load(certificate, key)

    def issue(
        self, key: ec.EllipticCurvePublicKey, uri: str, *, now: datetime | None = None
    ) -> list[bytes]:
        """The chain as DER, leaf first: `uri` as its only name, for clients, from five minutes
        ago until an hour from now. Raises CallError."""
        now = now or datetime.now(UTC)
        self._refresh()
        if now >= self._authority.certificate.not_valid_after_utc:
            _log.error("the actor-identity authority has expired", extra={"file": self._files[0]})
            raise CallError(grpc.StatusCode.UNAVAILABLE, "no certificates can be issued now")
        leaf = self._authority.issue(
            key, uri=uri, usages=[Usage.CLIENT], lifetime=BACKDATE + _LIFETIME, now=now
        )
        return [leaf.public_bytes(serialization.Encoding.DER)]

    def _refresh(self) -> None:
        """Keeps what it has when the new files are of no use, and says which one is not."""
        try:
            stamps = self._stat()
            if stamps == self._stamps:
                return
            self._stamps = stamps
            self._authority = Authority.load(*self._files)
        except AteError as e:
            _log.warning("keeping the old actor-identity authority", extra={"error": e.message})
        else:
            _log.info("a new actor-identity authority issues", extra={"file": self._files[0]})

    def _stat(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [path.stat() for path in self._files]
        except OSError as e:
            raise AteError(f"cannot read {e.filename}: {e.strerror}") from e
        return tuple((s.st_ino, s.st_mtime_ns) for s in found)


def requested_key(request: bytes) -> ec.EllipticCurvePublicKey:
    """The public key of a DER request, which its own signature proves. Raises InvalidArgument.

    Names and extensions of the request are not looked at: the caller does not choose them.
    """
    if not request:
        raise invalid(_FIELD, "is required")
    if len(request) > _MAX_REQUEST:
        raise invalid(_FIELD, f"has {len(request)} bytes; at most {_MAX_REQUEST}")
    try:
        parsed = x509.load_der_x509_csr(request)
        key = parsed.public_key()
        proven = parsed.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise invalid(_FIELD, "is not a DER certificate signing request") from e
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise invalid(_FIELD, "the key must be ECDSA P-256")
    if not proven:
        raise invalid(_FIELD, "its signature is not by its own key")
    return key
