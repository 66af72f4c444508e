"""A minted leaf, field by field."""

from datetime import UTC, datetime, timedelta

import pytest
from atenet.identity.authority import Authority
from atenet.sdsmint.leaf import Leaf, Minter, RefusedNameError
from atenet.sdsmint.pool import Signer
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

AUTHORITY = Authority.create("interception")
SIGNER = Signer(AUTHORITY.certificate, AUTHORITY.key, ())


def parsed(leaf: Leaf) -> x509.Certificate:
    return x509.load_pem_x509_certificate(leaf.chain)


# B114
@pytest.mark.conformance("E-20")
def test_a_leaf_is_what_strict_clients_want() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    leaf = parsed(Minter(900).mint("API.example.com.", SIGNER, now))
    leaf.verify_directly_issued_by(AUTHORITY.certificate)
    extensions = leaf.extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName("api.example.com")]
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)
    assert leaf.not_valid_before_utc == now - timedelta(minutes=5)
    assert leaf.not_valid_after_utc == now + timedelta(minutes=15)
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    issuer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    authority = AUTHORITY.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    assert issuer.key_identifier == authority.value.digest
    assert 0 < leaf.serial_number < 1 << 159


@pytest.mark.conformance("E-20")
def test_a_leaf_never_outlives_its_authority() -> None:
    later = AUTHORITY.certificate.not_valid_after_utc - timedelta(minutes=1)
    leaf = parsed(Minter(900).mint("a.example", SIGNER, later))
    assert leaf.not_valid_after_utc == AUTHORITY.certificate.not_valid_after_utc


# B115
@pytest.mark.conformance("E-20")
@pytest.mark.parametrize(
    "name",
    [
        *("", "*", "*.a.example", "under_score.example", "a" * 64 + ".example", "a." * 150),
        *("ä.example", "192.0.2.1", "[::1]", "a b"),
    ],
)
def test_what_is_no_server_name_gets_no_leaf(name: str) -> None:
    with pytest.raises(RefusedNameError):
        Minter(900).mint(name, SIGNER)
