"""What a worker takes for an actor's tunnel certificate, and what it does not."""

import datetime
from typing import Any

import pytest
from atenet.worker.egress.certificate import (
    UnusableCertificateError,
    checked,
    new_key,
    signing_request,
)
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.egress_agent import issued
from tests.support.egress_pki import tunnel_id
from tests.support.pki import Authority

URI = tunnel_id("team/agent")

AUTHORITY = Authority.create("actor-identity")


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_a_request_is_by_its_own_p_256_key_and_names_nobody() -> None:
    key = new_key()
    request = x509.load_der_x509_csr(signing_request(key))
    assert request.is_signature_valid
    assert request.public_key() == key.public_key()
    assert isinstance(key.curve, ec.SECP256R1)
    assert list(request.subject) == []
    assert len(signing_request(key)) < 16384


@pytest.mark.conformance("E-03")
def test_a_right_certificate_is_taken_with_its_key_and_its_end() -> None:
    key = new_key()
    chain = [issued(AUTHORITY, signing_request(key), uris=[URI], seconds=100)]
    taken = checked(chain, key, URI, now())
    assert taken.chain == tuple(chain)
    loaded = serialization.load_der_private_key(taken.key, None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    assert loaded.public_key() == key.public_key()
    assert 95 < (taken.not_after - now()).total_seconds() <= 101
    assert "key" not in repr(taken)


@pytest.mark.conformance("E-03")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"uris": [tunnel_id("team/other")]}, "names"),
        ({"uris": [URI, tunnel_id("team/other")]}, "names"),
        ({"uris": []}, "names"),
        ({"uris": ["spiffe://substrate-actor.local/actor/team/agent"]}, "names"),
        ({"seconds": -1}, "valid from"),
        ({"early": -datetime.timedelta(minutes=5)}, "valid from"),
        ({"client": False}, "not for clients"),
        ({"ca": True}, "an authority's"),
    ],
)
def test_a_wrong_one_is_refused(wrong: dict[str, Any], said: str) -> None:
    key = new_key()
    chain = [issued(AUTHORITY, signing_request(key), **{"uris": [URI], **wrong})]
    with pytest.raises(UnusableCertificateError, match=said):
        checked(chain, key, URI, now())


@pytest.mark.conformance("E-03")
def test_another_key_no_chain_and_a_chain_of_strangers_are_refused() -> None:
    key = new_key()
    leaf = issued(AUTHORITY, signing_request(key), uris=[URI])
    der = serialization.Encoding.DER
    issuer = AUTHORITY.certificate.public_bytes(der)
    stranger = Authority.create("stranger").certificate.public_bytes(der)
    assert checked([leaf, issuer], key, URI, now()).chain == (leaf, issuer)
    for chain, said in (
        ([], "no certificate"),
        ([b"no certificate"], "cannot be read"),
        ([issued(AUTHORITY, signing_request(new_key()), uris=[URI])], "another key"),
        ([leaf, stranger], "not issued by the one behind it"),
    ):
        with pytest.raises(UnusableCertificateError, match=said):
            checked(chain, key, URI, now())
