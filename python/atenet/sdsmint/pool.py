"""The interception authorities: a file with keys, read again when it changes."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from atenet.errors import AteError
from atenet.identity import files, pem

__all__ = ["CaPool", "Signer"]

_log = logging.getLogger(__name__)
_KEY = re.compile(
    rb"-----BEGIN (?P<kind>(?:EC )?PRIVATE KEY)-----.*?-----END (?P=kind)-----\s*", re.DOTALL
)


@dataclass(frozen=True)
class Signer:
    """An authority that mints. `chain`: what is shown behind a leaf."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...]


class CaPool:
    """The first authority of the files that is valid now. A file that became bad keeps the one before."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises AteError when there is none."""
        self._paths = tuple(paths)
        self._seen = _stamps(self._paths)
        self._signer = read_pool(self._paths)

    @property
    def signer(self) -> Signer:
        return self._signer

    def reload(self) -> bool:
        """Looks at the files. True: another authority mints from now on."""
        try:
            seen = _stamps(self._paths)
            ends = self._signer.certificate.not_valid_after_utc
            if seen == self._seen and datetime.now(UTC) < ends:
                return False
            self._seen = seen
            signer = read_pool(self._paths)
        except AteError as error:
            _log.error(
                "the authorities cannot be read; the one before goes on",
                extra={"error": str(error)},
            )
            return False
        changed = signer.certificate != self._signer.certificate
        self._signer = signer
        return changed


def read_pool(paths: Sequence[Path], now: datetime | None = None) -> Signer:
    """Keys and certificates in any order; what belongs together is found by the public key. Raises AteError."""
    keys: list[ec.EllipticCurvePrivateKey] = []
    certificates: list[x509.Certificate] = []
    for path in paths:
        content = _content(path)
        keys += [pem.parse_key(match.group(), path) for match in _KEY.finditer(content)]
        if rest := _KEY.sub(b"", content).strip():
            certificates += pem.parse_certificates(rest, path)
    named = ", ".join(map(str, paths))
    if not keys:
        raise AteError(
            f"{named}: no private key in it", hint="put the authority's key beside its certificate"
        )
    by_key = {key.public_key().public_numbers(): key for key in keys}
    now = now or datetime.now(UTC)
    for certificate in certificates:
        public = certificate.public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            continue
        key = by_key.get(public.public_numbers())
        if key is not None and _mints(certificate, now):
            return Signer(certificate, key, _chain(certificate, certificates))
    raise AteError(
        f"{named}: no authority in it that is valid now and whose key is there too",
        hint="an authority's certificate says CA:TRUE; look at its validity as well",
    )


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise AteError(f"cannot read {path}: {error.strerror}") from error
    # A key is for this account alone.
    return files.read_private(path) if _KEY.search(content) else content


def _mints(certificate: x509.Certificate, now: datetime) -> bool:
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        return False
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except x509.ExtensionNotFound:
        return False


def _chain(
    certificate: x509.Certificate, others: list[x509.Certificate]
) -> tuple[x509.Certificate, ...]:
    """Up to, and without, an authority that signed itself: clients have that one."""
    chain: list[x509.Certificate] = []
    while certificate.issuer != certificate.subject and certificate not in chain:
        chain.append(certificate)
        issuers = [each for each in others if each.subject == certificate.issuer]
        if not issuers:
            break
        certificate = issuers[0]
    return tuple(chain)


def _stamps(paths: Sequence[Path]) -> list[tuple[int, int, int]]:
    return [_stamp(path) for path in paths]


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise AteError(f"cannot read {path}: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size
