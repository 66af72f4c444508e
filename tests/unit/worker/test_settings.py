from pathlib import Path
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.worker.settings import WorkerSettings


def settings(**given: Any) -> WorkerSettings:
    place = Path("/nowhere")
    named = {
        "name": "worker-1",
        "ip": ("127.0.0.1",),
        "atelet_socket": place,
        "socket": place,
        "credential": place,
        "trust": place,
        "state_dir": place,
        "net_prefix": "atw1-",
    }
    return WorkerSettings(**{**named, **given})


def test_the_defaults_are_good() -> None:
    assert settings().dns_answers == "synthetic"


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("dns_answers", "both", "--dns-answers"),
        ("dns_range", "198.18.0.1/15", "--dns-range"),
        ("dns_range", "198.18.0.0/30", "--dns-range"),
        ("dns_range", "::/0", "--dns-range"),
        ("dns_upstream", ("resolver.example",), "--dns-upstream"),
        ("capture_port", 80, "--capture-port"),
        ("capture_port", 40000, "--capture-port"),
        ("egress_connections", 0, "--egress-connections"),
        ("policy_refresh", 60.0, "--policy-refresh"),
    ],
)
def test_a_bad_value_is_named_by_its_flag(field: str, value: Any, flag: str) -> None:
    with pytest.raises(AteError, match=flag):
        settings(**{field: value})


def test_its_identity_is_its_pool_s_account_unless_it_has_one_of_its_own() -> None:
    assert settings().spiffe_id == "spiffe://cluster.local/ns/default/sa/local"
    own = settings(service_account="robot")
    assert (own.spiffe_id, own.pool) == ("spiffe://cluster.local/ns/default/sa/robot", "local")
    with pytest.raises(AteError, match="--service-account"):
        settings(service_account="Not A Name")
