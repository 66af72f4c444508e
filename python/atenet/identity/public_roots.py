"""The authorities that the public web's certificates chain to, as this machine has them."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

__all__ = ["public_roots"]

# Where systems keep them in one PEM file, whatever OpenSSL Python was built with.
_USUAL = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def public_roots() -> Path:
    """The system's bundle; certifi's where the system has none."""
    return next((path for path in _candidates() if _holds_some(path)), _carried())


def _candidates() -> Iterable[Path]:
    paths = ssl.get_default_verify_paths()
    named = [paths.cafile, paths.openssl_cafile, *_USUAL]
    return (Path(path) for path in named if path)


def _holds_some(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _carried() -> Path:
    import certifi  # only where the system has none

    return Path(certifi.where())
