"""Interception authorities for the tests, and files that hold them."""

from datetime import timedelta
from pathlib import Path

from atenet.identity import pem
from atenet.identity.authority import Authority


def bundle(*authorities: Authority) -> bytes:
    """Keys and certificates one after the other."""
    return b"".join(
        pem.key_pem(each.key) + pem.certificate_pem(each.certificate) for each in authorities
    )


def write(path: Path, content: bytes) -> Path:
    """Replaced by rename, as everybody does with such a file."""
    partial = path.with_name(f"{path.name}.partial")
    partial.touch(0o600)
    partial.write_bytes(content)
    return partial.replace(path)


def expired() -> Authority:
    from datetime import UTC, datetime

    then = datetime.now(UTC) - timedelta(days=2)
    return Authority.create("interception", lifetime=timedelta(days=1), now=then)
