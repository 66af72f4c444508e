"""What Envoy is told as an egress gateway, as far as a promise depends on it. Pure: no Envoy runs here."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from atenet.address import Address
from atenet.errors import AteError
from atenet.router.egress_decisions import egress_decision_config
from atenet.router.refusals import egress_denial
from atenet.router.resources.egress import build_egress_snapshot, names
from atenet.router.resources.egress.clusters import egress_clusters
from atenet.router.resources.egress.filters import carry_tunnel, judge, open_tunnel
from atenet.router.resources.egress.listeners import egress_listeners
from atenet.router.resources.egress.tls import egress_secrets

from tests.unit.router.egress_settings import egress_settings
from tests.unit.router.test_resources import found

ENGINE = Path(__file__).parents[3] / "engine/atenet-engine/src/egress"


def listener(name: str, **changed: Any) -> Any:
    (it,) = [each for each in egress_listeners(egress_settings(**changed)) if each["name"] == name]
    return it


def chains(name: str, **changed: Any) -> dict[str, Any]:
    return {chain["name"]: chain for chain in listener(name, **changed)["filter_chains"]}


def test_equal_settings_give_equal_resources() -> None:
    given = egress_settings(experimental_additional_egress_extproc_service=Address("a.example", 1))
    assert build_egress_snapshot(given, decisions_port=1) == build_egress_snapshot(
        given, decisions_port=1
    )


def test_only_the_listener_for_tunnels_is_on_the_network() -> None:
    public = [each["name"] for each in egress_listeners(egress_settings()) if "address" in each]
    assert public == [names.LISTENER_TUNNELS]


def test_a_tunnel_needs_a_certificate_with_one_id_and_no_session_is_resumed() -> None:
    tunnels = listener(names.LISTENER_TUNNELS)
    assert found(tunnels, "require_client_certificate") == [True]
    assert found(tunnels, "disable_stateless_session_resumption") == [True]
    assert found(tunnels, "disable_stateful_session_resumption") == [True]
    (pattern,) = [
        each["regex"] for each in found(tunnels, "safe_regex") if "spiffe" in each["regex"]
    ]
    good = "spiffe://substrate-actor.local/worker-for-actor/team/a"
    assert re.fullmatch(pattern, good)
    for bad in (
        "",
        f"{good},{good}",
        good.replace("worker", "%77orker"),
        f"{good}/",
        "https://a/b",
    ):
        assert not re.fullmatch(pattern, bad), bad


def test_connections_of_different_tunnels_are_never_pooled_together() -> None:
    (state,) = found(carry_tunnel(), "on_request_headers")[0]
    assert state["factory_key"] == "envoy.hashable_string"
    assert state["shared_with_upstream"] == "TRANSITIVE"


def test_the_question_of_a_tunnel_stays_open() -> None:
    # A CONNECT has no trailers: their answer stays due for as long as it lives.
    (mode,) = found(open_tunnel(egress_settings()), "processing_mode")
    assert mode["request_trailer_mode"] == "SEND"


def test_no_answer_means_no_way_through() -> None:
    for each in egress_listeners(egress_settings()):
        assert not any(found(each, "failure_mode_allow"))
    (first,) = found(listener(names.LISTENER_FIRST), "filter_chain_matcher")
    assert first["on_no_match"]["action"]["typed_config"]["value"] == names.CHAIN_OTHER
    # What nobody decided has no chain, and is closed.
    assert "on_no_match" not in found(listener(names.LISTENER_INSIDE), "filter_chain_matcher")[0]


def test_envoy_waits_longer_for_a_decision_than_one_can_take() -> None:
    given = egress_settings(egress_connect_timeout=30.0)
    (timeout,) = found(judge(given), "message_timeout")
    assert float(timeout.removesuffix("s")) == given.decision_timeout > 30 + 3 * 5


def test_there_is_a_chain_for_every_alert_of_the_engine() -> None:
    source = (ENGINE / "denial.rs").read_text()
    body = source[source.index("const fn alert(self)") :]
    alerts = {int(number) for number in re.findall(r"=> (\d+),", body[: body.index("impl ")])}
    assert alerts == set(names.ALERTS)
    inside = chains(names.LISTENER_INSIDE)
    for number in alerts:
        (said,) = found(inside[names.alert_chain(number)], "inline_bytes")
        assert base64.b64decode(said) == bytes([21, 3, 3, 0, 2, 2, number])


def test_decisions_may_be_asked_for_over_a_socket_of_ones_own() -> None:
    given = egress_settings(extproc_socket=Path("/run/decisions.sock"))
    (cluster,) = [each for each in egress_clusters(given, 0) if each["name"] == "decisions"]
    assert found(cluster, "pipe") == [{"path": "/run/decisions.sock"}]
    assert egress_decision_config(given)["socket"] == "/run/decisions.sock"
    assert egress_decision_config(egress_settings())["socket"] is None


def test_without_a_minter_there_is_no_interception() -> None:
    assert names.CHAIN_TLS in chains(names.LISTENER_INSIDE)
    assert names.CHAIN_TLS not in chains(names.LISTENER_INSIDE, sdsmint_socket=None)
    assert not egress_decision_config(egress_settings(sdsmint_socket=None))["intercepts"]


def test_the_interception_key_is_none_of_envoys_secrets() -> None:
    secrets = egress_secrets(egress_settings())
    kinds = [each.get("tls_certificate") or each["validation_context"] for each in secrets]
    assert {kind["watched_directory"]["path"] for kind in kinds} == {"/nowhere", "/etc/ssl/certs"}
    assert [each["name"] for each in secrets if "tls_certificate" in each] == ["serving-credential"]


def test_every_origin_is_dialled_by_a_checked_address_alone() -> None:
    for name in (names.CHAIN_HTTP, names.CHAIN_TLS):
        where = names.LISTENER_FIRST if name == names.CHAIN_HTTP else names.LISTENER_INSIDE
        states = [
            each for group in found(chains(where)[name], "on_request_headers") for each in group
        ]
        assert {
            "envoy.upstream.dynamic_host",
            "envoy.upstream.dynamic_port",
            "envoy.network.upstream_server_name",
            "envoy.network.upstream_subject_alt_names",
        } == {state["object_key"] for state in states}


def test_no_route_and_no_cluster_has_a_limit_that_nobody_chose() -> None:
    routes = [
        route for each in egress_listeners(egress_settings()) for route in found(each, "route")
    ]
    assert {route["timeout"] for route in routes} == {"0s"}
    for cluster in egress_clusters(egress_settings(), 1):
        for limits in found(cluster, "thresholds"):
            assert limits[0]["max_connections"] > 100_000


def test_a_further_processor_comes_after_ours_and_may_not_route() -> None:
    more = {"experimental_additional_egress_extproc_service": Address("a.example", 9)}
    for where, name in (
        (names.LISTENER_FIRST, names.CHAIN_HTTP),
        (names.LISTENER_INSIDE, names.CHAIN_TLS),
    ):
        (filters,) = found(chains(where, **more)[name], "http_filters")
        order = [each["name"] for each in filters]
        assert order.index("envoy.filters.http.set_filter_state") < order.index("additional")
        assert order.index("additional") < order.index("envoy.filters.http.dynamic_forward_proxy")
        (theirs,) = [each["typed_config"] for each in filters if each["name"] == "additional"]
        assert theirs["mutation_rules"] == {"disallow_system": True}
        assert not theirs["failure_mode_allow"]


def test_rows_that_share_a_reason_are_told_apart() -> None:
    bodies = {
        egress_denial(f"origin-untrusted/{why}").body for why in ("expired", "wrong-name", "other")
    }
    assert len(bodies) == 3
    assert egress_denial("origin-untrusted/expired").status == 502


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"egress_allow_cidr": ("10.0.0.0/33",)}, "--egress-allow-cidr"),
        ({"egress_sniff_timeout": 0.0}, "--egress-sniff-timeout"),
        ({"port_tunnels": 70000}, "--port-tunnels"),
    ],
)
def test_a_faulty_flag_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(AteError, match=said):
        egress_settings(**changed)
