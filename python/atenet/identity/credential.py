"""Credential bundles: a private key and its certificate chain in one PEM file, 0600."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from atenet.errors import AteError
from atenet.identity import files, pem
from atenet.identity.authority import LEAF_LIFETIME, Authority, Usage
from atenet.identity.renewal import leaf_due

__all__ = ["Credential", "Want", "ensure", "issue", "issued_by"]


@dataclass(frozen=True)
class Want:
    """What a credential must say."""

    uri: str | None
    dns: tuple[str, ...]
    usages: tuple[Usage, ...]


@dataclass(frozen=True)
class Credential:
    """A bundle as read from its file."""

    key: ec.EllipticCurvePrivateKey
    chain: list[x509.Certificate]

    @classmethod
    def load(cls, path: Path) -> Credential:
        """Raises AteError, naming the file, when it is missing, loose, or damaged."""
        return cls.parse(files.read_private(path), path)

    @classmethod
    def parse(cls, content: bytes, path: Path) -> Credential:
        """A bundle that was read elsewhere; errors name `path`. Raises AteError."""
        key = pem.parse_key(content, path)
        chain = pem.parse_certificates(content, path)
        if chain[0].public_key() != key.public_key():
            raise AteError(
                f"{path} is damaged: its key and its certificate do not belong together",
                hint="delete it to have a new one issued",
            )
        return cls(key, chain)

    @property
    def leaf(self) -> x509.Certificate:
        return self.chain[0]

    def want(self) -> Want:
        """The names and usages that this leaf was issued for."""
        names = self.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usages = self.leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        hosts = [str(n.value) for n in names if isinstance(n, x509.DNSName | x509.IPAddress)]
        return Want(uris[0] if uris else None, tuple(hosts), tuple(Usage(u) for u in usages))

    def serves(self, want: Want, issuer: Authority, now: datetime) -> bool:
        """Whether it still says what is wanted, from this issuer, with life enough left."""
        leaf = self.leaf
        return (
            self.want() == want
            and issued_by(leaf, issuer.certificate)
            and not leaf_due(leaf.not_valid_before_utc, leaf.not_valid_after_utc, now)
        )


def ensure(path: Path, want: Want, issuer: Authority, *, now: datetime | None = None) -> bool:
    """Issues the credential unless the file already serves. True when it was written."""
    now = now or datetime.now(UTC)
    if path.exists() and Credential.load(path).serves(want, issuer, now):
        return False
    files.write_private(path, issue(want, issuer, now=now))
    return True


def issue(
    want: Want,
    issuer: Authority,
    *,
    lifetime: timedelta = LEAF_LIFETIME,
    now: datetime | None = None,
) -> bytes:
    """A fresh key and its certificate, as the bundle's content."""
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = issuer.issue(
        key.public_key(),
        uri=want.uri,
        dns=want.dns,
        usages=want.usages,
        lifetime=lifetime,
        now=now,
    )
    return pem.key_pem(key) + pem.certificate_pem(leaf)


def issued_by(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether this very authority signed it."""
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
