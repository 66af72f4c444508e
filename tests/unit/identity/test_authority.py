"""What authorities issue, and which ones are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.identity import Authority, Usage
from atenet.identity.authority import LEAF_LIFETIME
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification

_URI = "spiffe://cluster.local/ns/default/sa/local"


def _leaf(authority: Authority, **given: object) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    wanted: dict[str, object] = {"uri": _URI, "usages": (Usage.CLIENT,)}
    return authority.issue(key.public_key(), **(wanted | given))  # type: ignore[arg-type]


def test_a_leaf_says_exactly_what_was_asked() -> None:
    leaf = _leaf(Authority.create("pods"), dns=["api.ate-system.svc", "127.0.0.1"])
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [_URI]
    assert names.get_values_for_type(x509.DNSName) == ["api.ate-system.svc"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [Usage.CLIENT.value]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_leaf_is_backdated_a_little_and_lives_a_day_at_most() -> None:
    now = datetime.now(UTC)
    leaf = _leaf(Authority.create("pods"), now=now)
    assert now - leaf.not_valid_before_utc >= timedelta(minutes=4)
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc <= timedelta(hours=24)
    assert timedelta(hours=24) >= LEAF_LIFETIME


def test_a_leaf_never_outlives_its_authority() -> None:
    authority = Authority.create("pods", lifetime=timedelta(hours=1))
    assert _leaf(authority).not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_a_strict_verifier_accepts_the_chain() -> None:
    authority = Authority.create("services")
    leaf = _leaf(authority, uri=None, dns=["api.ate-system.svc"], usages=(Usage.SERVER,))
    store = verification.Store([authority.certificate])
    verifier = verification.PolicyBuilder().store(store)
    verifier.build_server_verifier(x509.DNSName("api.ate-system.svc")).verify(leaf, [])


def test_a_certificate_without_a_name_is_not_issued() -> None:
    with pytest.raises(AteError, match="needs a name"):
        _leaf(Authority.create("pods"), uri=None)


def _saved(tmp_path: Path, authority: Authority) -> tuple[Path, Path]:
    paths = tmp_path / "a.crt", tmp_path / "a.key"
    authority.save(*paths)
    return paths


def test_it_is_read_back(tmp_path: Path) -> None:
    made = Authority.create("pods")
    certificate, key = _saved(tmp_path, made)
    assert key.stat().st_mode & 0o777 == 0o600
    assert Authority.load(certificate, key).certificate == made.certificate


def test_one_of_tomorrow_is_refused_by_name(tmp_path: Path) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    certificate, key = _saved(tmp_path, Authority.create("pods", now=tomorrow))
    with pytest.raises(AteError, match=r"a\.crt is not valid before") as caught:
        Authority.load(certificate, key)
    assert "clock" in (caught.value.hint or "")


def test_an_expired_one_is_refused_by_name(tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=3)
    old = Authority.create("pods", now=long_ago, lifetime=timedelta(days=1))
    certificate, key = _saved(tmp_path, old)
    with pytest.raises(AteError, match=r"a\.crt expired"):
        Authority.load(certificate, key)


def test_a_leaf_is_no_authority(tmp_path: Path) -> None:
    authority = Authority.create("pods")
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = authority.issue(key.public_key(), uri=_URI, usages=(Usage.CLIENT,))
    certificate, path = _saved(tmp_path, Authority("x", leaf, key))
    with pytest.raises(AteError, match="not a certificate authority"):
        Authority.load(certificate, path)


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    certificate, key = _saved(tmp_path, Authority.create("pods"))
    Authority.create("other").save(tmp_path / "b.crt", key)
    with pytest.raises(AteError, match="is not the key of"):
        Authority.load(certificate, key)


@pytest.mark.parametrize("file", ["a.crt", "a.key"])
@pytest.mark.parametrize("content", [b"", b"\0\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_damaged_file_is_named(tmp_path: Path, file: str, content: bytes) -> None:
    certificate, key = _saved(tmp_path, Authority.create("pods"))
    (tmp_path / file).write_bytes(content)
    with pytest.raises(AteError, match=file) as caught:
        Authority.load(certificate, key)
    assert caught.value.hint


def test_a_weak_key_is_refused(tmp_path: Path) -> None:
    certificate, key = _saved(tmp_path, Authority.create("pods"))
    weak = ec.generate_private_key(ec.SECP224R1())
    Authority("x", Authority.create("x").certificate, weak).save(tmp_path / "b.crt", key)
    with pytest.raises(AteError, match="not ECDSA P-256 or stronger"):
        Authority.load(certificate, key)
