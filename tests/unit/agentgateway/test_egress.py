"""The file of an egress gateway: its parts, what the engine gets, and what does not fit."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from atenet._engine import Router
from atenet.agentgateway import ConfigFileError, Options, load, parse
from atenet.agentgateway.limits import Limits
from atenet.agentgateway.model import unused_keys
from atenet.agentgateway.model.egress import EgressFile
from atenet.agentgateway.translate import router_config
from atenet.agentgateway.untranslatable import Untranslatable

from tests.unit.agentgateway.files import text

EXAMPLE = Path(__file__).parents[3] / "examples" / "agentgateway-egress.yaml"


def data() -> dict[str, Any]:
    """The example as data of its own, nothing shared."""
    read: dict[str, Any] = copy.deepcopy(yaml.safe_load(EXAMPLE.read_text()))
    return json.loads(json.dumps(read))  # type: ignore[no-any-return]


def translated(changed: dict[str, Any], **options: Any) -> dict[str, Any]:
    file = parse(text(changed), "file.yaml")
    assert isinstance(file, EgressFile)
    options.setdefault("bind_address", "127.0.0.1")
    config = router_config(file, Options(**options))
    Router(json.dumps(config))  # the engine takes it
    return config


def policies(changed: dict[str, Any], listener: int) -> dict[str, Any]:
    route = changed["binds"][1]["listeners"][listener]["routes"][0]
    return route["policies"]["substrateEgress"]  # type: ignore[no-any-return]


def test_the_example_is_an_egress_gateway() -> None:
    file = load(EXAMPLE)
    assert isinstance(file, EgressFile)
    egress = router_config(file, Options("0.0.0.0"))["egress"]
    assert (egress["name"], egress["address"]) == ("tunnels", "0.0.0.0:8443")
    assert egress["client_roots"] == "/run/actor-identity/trust-bundle.pem"
    assert egress["interception"]["cert"] == "/run/interception/tls.crt"
    assert [provider["class"] for provider in egress["credential_providers"]] == ["kubernetes.io"]
    assert egress["control"]["server_name"] == "api.ate-system.svc"
    assert list(unused_keys(file)) == []


def test_flags_arrive_at_the_engine() -> None:
    limits = Limits(egress_sniff_timeout=0.25, egress_allow_cidr=("10.0.0.0/8", "::1"))
    egress = translated(data(), limits=limits)["egress"]
    assert egress["allow_cidrs"] == ["10.0.0.0/8", "::1"]
    assert egress["limits"]["sniff_ms"] == 250


def test_a_bad_block_of_addresses_is_named() -> None:
    with pytest.raises(ValueError, match=r"egress\.allow_cidrs\[0\]: must be a block of addresses"):
        translated(data(), limits=Limits(egress_allow_cidr=("10.0.0.0/33",)))


def test_without_the_intercepting_listener_nothing_is_intercepted() -> None:
    changed = data()
    del changed["binds"][1]["listeners"][0]
    assert translated(changed)["egress"]["interception"] is None


def test_origins_may_have_roots_of_their_own() -> None:
    changed = data()
    route = changed["binds"][1]["listeners"][0]["routes"][0]
    route["backends"][0]["policies"] = {"backendTLS": {"root": "origins.pem"}}
    assert translated(changed)["egress"]["origin_roots"] == "origins.pem"


@pytest.mark.parametrize(
    ("change", "path", "problem"),
    [
        (lambda d: policies(d, 0).update(host="other:1"), "substrateEgress.host", "differs from"),
        (
            lambda d: policies(d, 1).update(credentialProviders=[]),
            "substrateEgress.credentialProviders",
            "differs from",
        ),
        (lambda d: d["binds"].__setitem__(1, d["binds"][0]), "binds", "one with mode: internal"),
        (
            lambda d: d["binds"][1]["listeners"][0]["routes"][0]["backends"][0].update(
                policies={"backendTLS": {"cert": "a.pem"}}
            ),
            "backendTLS.cert",
            "is not supported",
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(change: Any, path: str, problem: str) -> None:
    changed = data()
    change(changed)
    with pytest.raises(Untranslatable) as caught:
        translated(changed)
    assert path in caught.value.problem.path
    assert problem in caught.value.problem.message


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d["binds"][0]["listeners"][0]["tls"].pop("root"), "needs tls.root"),
        (lambda d: d["binds"][0].pop("tunnelProtocol"), "tunnelProtocol: connect"),
        (lambda d: d["binds"][1].pop("protocol"), "protocol: AUTO"),
        (lambda d: d["binds"][1]["listeners"].pop(), "one listener each for HTTP, TLS"),
        (lambda d: d["binds"][1]["listeners"][0].pop("tls"), "HTTPS has tls.mode: dynamicCa"),
        (lambda d: d["binds"][1]["listeners"][2].pop("tcpRoutes"), "one entry in tcpRoutes"),
        (lambda d: d["binds"][1]["listeners"][1].pop("routes"), "one entry in routes"),
        (lambda d: d.update(llm={}), "does not support it"),
        (lambda d: d.update(bindz=1), "did you mean `binds`?"),
    ],
)
def test_a_faulty_file_is_told_what_is_wrong(change: Any, problem: str) -> None:
    changed = data()
    change(changed)
    with pytest.raises(ConfigFileError) as caught:
        parse(text(changed), "file.yaml")
    assert problem in str(caught.value)
