from __future__ import annotations

from datetime import timedelta

from atenet.controller.signing.issue import issue
from atenet.controller.signing.request import Grant, decide
from atenet.identity.authority import Authority
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.controller.signing.asking import NOW, asked, facts, stub_csr

_AUTHORITY = Authority.create("pod-identity", now=NOW)
_CSR = stub_csr()


def grant(seconds: int) -> Grant:
    found = decide(asked(max_seconds=seconds, csr=_CSR), facts())
    assert isinstance(found, Grant)
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(3600, 7_862_400), st.integers(0, 999_999))
def test_what_is_issued_is_within_what_the_api_server_takes(seconds: int, micro: int) -> None:
    now = NOW.replace(microsecond=micro)
    issued = issue(grant(seconds), _AUTHORITY, now)
    assert issued is not None
    leaf = x509.load_pem_x509_certificate(issued.chain.encode())
    assert (issued.not_before, issued.not_after) == (
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )
    life = issued.not_after - issued.not_before
    assert timedelta(hours=1) <= life <= min(timedelta(hours=24), timedelta(seconds=seconds))
    assert abs(issued.not_before - now) < timedelta(minutes=4)
    margin = timedelta(minutes=10)
    assert issued.not_before + margin <= issued.begin_refresh_at <= issued.not_after - margin
    leaf.verify_directly_issued_by(_AUTHORITY.certificate)


def test_nothing_is_issued_that_would_live_less_than_an_hour() -> None:
    late = _AUTHORITY.certificate.not_valid_after_utc - timedelta(minutes=50)
    assert issue(grant(86400), _AUTHORITY, late) is None
