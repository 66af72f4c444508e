"""The interception authorities: a file with keys, read again when it changes."""

from __future__ import annotations

import logging
import re
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
    """The first authority of the file that is valid now. A file that became bad keeps the one before."""

    def __init__(self, path: Path) -> None:
        """Raises AteError when there is none."""
        self._path = path
        self._seen = _stamp(path)
        self._signer = read_pool(path)

    @property
    def signer(self) -> Signer:
        return self._signer

    def reload(self) -> bool:
        """Looks at the file. True: another authority mints from now on."""
        try:
            seen = _stamp(self._path)
            ends = self._signer.certificate.not_valid_after_utc
            if seen == self._seen and datetime.now(UTC) < ends:
                return False
            self._seen = seen
            signer = read_pool(self._path)
        except AteError as error:
            _log.error(
                "the authorities cannot be read; the one before goes on",
                extra={"error": str(error)},
            )
            return False
        changed = signer.certificate != self._signer.certificate
        self._signer = signer
        return changed


def read_pool(path: Path, now: datetime | None = None) -> Signer:
    """Keys and certificates in any order; what belongs together is found by the public key. Raises AteError."""
    content = files.read_private(path)
    keys = [pem.parse_key(match.group(), path) for match in _KEY.finditer(content)]
    if not keys:
        raise AteError(
            f"{path}: no private key in it", hint="put the authority's key beside its certificate"
        )
    certificates = pem.parse_certificates(_KEY.sub(b"", content), path)
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
        f"{path}: no authority in it that is valid now and whose key is there too",
        hint="an authority's certificate says CA:TRUE; look at its validity as well",
    )


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


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise AteError(f"cannot read {path}: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size
