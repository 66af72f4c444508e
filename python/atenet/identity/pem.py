"""Keys and certificates as PEM, with errors that name the file they came from."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from atenet.errors import AteError

__all__ = ["certificate_pem", "key_pem", "parse_certificates", "parse_key"]


def certificate_pem(*certificates: x509.Certificate) -> bytes:
    """The certificates in the order given."""
    return b"".join(c.public_bytes(serialization.Encoding.PEM) for c in certificates)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """PKCS #8, not encrypted: the file's mode is what protects it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def parse_certificates(content: bytes, path: Path) -> list[x509.Certificate]:
    """All certificates of the file, at least one. Raises AteError."""
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError as e:
        raise _damaged(path, "no readable certificate in it") from e


def parse_key(content: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    """The file's private key. Raises AteError unless it is an ECDSA key of at least P-256."""
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as e:
        raise _damaged(path, "no readable private key in it") from e
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.key_size < 256:
        raise _damaged(path, "the key is not ECDSA P-256 or stronger")
    return key


def _damaged(path: Path, what: str) -> AteError:
    return AteError(
        f"{path} is damaged: {what}",
        hint="restore it from a backup, or delete it and what depends on it to have it made anew",
    )
