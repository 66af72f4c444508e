"""What the router refuses to be told."""

import pytest
from atenet.address import Address, loopback_address
from atenet.errors import AteError

from tests.unit.router.settings import FRONTEND, settings

BACKEND = "spiffe://cluster.local/ns/web/sa/backend"


def test_the_list_of_clients_is_separated_by_commas_or_repeated() -> None:
    given = settings(ingress_allowed_spiffe_ids=(f"{FRONTEND}, {BACKEND}", FRONTEND))
    assert given.allowed_ids == (FRONTEND, BACKEND)


@pytest.mark.parametrize("ids", [(), ("",), (" , ",)])
def test_an_empty_list_never_means_anyone(ids: tuple[str, ...]) -> None:
    with pytest.raises(AteError, match="--ingress-allowed-spiffe-ids names nobody"):
        settings(ingress_allowed_spiffe_ids=ids)


@pytest.mark.parametrize(
    "wrong", ["frontend", "spiffe://", "spiffe://cluster.local", "https://a/b", f"{FRONTEND}/", "*"]
)
def test_what_is_no_spiffe_id_is_named(wrong: str) -> None:
    with pytest.raises(AteError, match="is not a SPIFFE ID") as caught:
        settings(ingress_allowed_spiffe_ids=(FRONTEND, wrong))
    assert repr(wrong) in caught.value.message


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("port_https", 65536, "--port-https"),
        ("worker_port", -1, "--worker-port"),
        ("parked_request_budget", 0.0, "--parked-request-budget"),
        ("parked_request_max", -1, "--parked-request-max"),
        ("parked_request_retry_factor", 0.9, "--parked-request-retry-factor"),
        ("drain_timeout", 5.0, "--drain-timeout"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_flag(field: str, value: float, flag: str) -> None:
    with pytest.raises(AteError, match=flag):
        settings(**{field: value})


def test_a_short_drain_is_fine_where_nothing_is_parked() -> None:
    assert settings(drain_timeout=1.0, parked_request_max=0).drain_limit == 1.0


def test_deadlines_fit_together() -> None:
    # Our own refusal comes first, and a drain outlives the longest wait for room.
    given = settings(parked_request_budget=7.0)
    assert given.decision_timeout > 7.0 + 30.0
    assert given.drain_limit > 7.0


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), (":9090", "0.0.0.0", 9090)],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "127.0.0.1", "host:", "host:http", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not <host>:<port>"):
        Address.parse(text)


def test_envoys_admin_api_stays_on_loopback() -> None:
    assert loopback_address("127.0.0.1:9901").port == 9901
    for outside in ("0.0.0.0:9901", ":9901", "10.0.0.1:9901", "example.org:9901"):
        with pytest.raises(ValueError, match="must not be reachable from outside"):
            loopback_address(outside)
