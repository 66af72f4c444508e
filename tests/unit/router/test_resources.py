"""What Envoy is told, as far as a promise depends on it. Pure: no Envoy runs here."""

import re
from typing import Any

import pytest
from atenet._engine import TUNNEL_STREAMS
from atenet.errors import AteError
from atenet.router.envoy_api import pack, parse
from atenet.router.resources import build_snapshot
from atenet.router.resources.clusters import clusters
from atenet.router.resources.filters import decide
from atenet.router.resources.hygiene import ignored_upgrades
from atenet.router.resources.listeners import listeners
from atenet.router.resources.tls import secrets
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.router.settings import FRONTEND, settings

LISTENER = "envoy.config.listener.v3.Listener"


def found(resource: Any, key: str) -> list[Any]:
    """Every value of a key, however deep."""
    if isinstance(resource, dict):
        own = [resource[key]] if key in resource else []
        return own + [value for each in resource.values() for value in found(each, key)]
    if isinstance(resource, list):
        return [value for each in resource for value in found(each, key)]
    return []


def on_the_network() -> list[Any]:
    return [each for each in listeners(settings()) if "address" in each]


def test_equal_settings_give_equal_resources() -> None:
    assert build_snapshot(settings(), decisions_port=1) == build_snapshot(
        settings(), decisions_port=1
    )


def test_envoy_opens_as_many_tunnels_on_a_connection_as_atunnel_takes() -> None:
    # Envoy does not wait for the worker to say it, and a tunnel that is refused twice is a 503.
    # What atunnel really says is held to the same number in tests/conformance/atunnel/test_admission.py.
    streams = found(clusters(settings(), decisions_port=1), "max_concurrent_streams")
    assert streams == [TUNNEL_STREAMS]


def test_only_two_listeners_are_on_the_network() -> None:
    assert [each["name"] for each in on_the_network()] == ["ingress", "connect"]


def test_both_require_a_client_on_the_list_and_resume_no_session() -> None:
    for listener in on_the_network():
        assert found(listener, "require_client_certificate") == [True]
        assert found(listener, "disable_stateless_session_resumption") == [True]
        assert found(listener, "disable_stateful_session_resumption") == [True]
        matchers = found(listener, "match_typed_subject_alt_names")
        assert matchers == [[{"san_type": "URI", "matcher": {"exact": FRONTEND}}]]
        # The whole set of a certificate's URIs must be one entry.
        (identity,) = [
            each["typed_config"]
            for each in listener["filter_chains"][0]["filters"]
            if each["name"] == "envoy.filters.network.rbac"
        ]
        assert list(found(identity, "exact_match_map")[0]["map"]) == [FRONTEND]


def test_every_certificate_is_a_file_in_a_watched_directory() -> None:
    kinds = [
        each.get("tls_certificate") or each["validation_context"] for each in secrets(settings())
    ]
    assert all(kind["watched_directory"] == {"path": "/nowhere"} for kind in kinds)
    assert len(kinds) == 4


def test_envoy_waits_longer_for_a_decision_than_one_can_take() -> None:
    given = settings(parked_request_budget=9.0)
    (timeout,) = found(decide(given), "message_timeout")
    assert float(timeout.removesuffix("s")) == given.decision_timeout


def test_the_decision_is_told_no_header_that_could_hold_a_secret() -> None:
    (rules,) = found(decide(settings()), "forward_rules")
    names = {pattern["exact"] for pattern in rules["allowed_headers"]["patterns"]}
    assert not {"authorization", "cookie", "x-api-key"} & names


def test_no_answer_means_no_way_through() -> None:
    assert found(decide(settings()), "failure_mode_allow") == [False]


def test_no_route_has_a_total_deadline() -> None:
    routes = [route for each in listeners(settings()) for route in found(each, "route")]
    assert routes
    assert {route["timeout"] for route in routes} == {"0s"}


def test_the_stream_idle_limit_is_the_flags() -> None:
    limits = found(listeners(settings(stream_idle_timeout=7.0)), "stream_idle_timeout")
    assert set(limits) == {"7.0s"}


def test_interim_answers_of_actors_pass() -> None:
    assert set(found(listeners(settings()), "proxy_100_continue")) == {True}


def test_no_cluster_keeps_envoys_limit_of_1024() -> None:
    for cluster in clusters(settings(), 1):
        (limits,) = found(cluster, "thresholds")
        assert limits[0]["max_connections"] > 100_000
        assert limits[0]["max_requests"] > 100_000


def test_a_collector_adds_spans_and_its_cluster() -> None:
    from atenet.address import Address

    given = settings(otlp_collector_address=Address("otel", 4318))
    assert "traces" in [each["name"] for each in clusters(given, 1)]
    assert len(found(listeners(given), "provider")) == 2
    # No lots are drawn by a request id, which nobody makes.
    assert found(listeners(given), "use_request_id_for_trace_sampling") == [False, False]
    assert found(listeners(settings()), "provider") == []
    build_snapshot(given, decisions_port=1)


def test_a_field_that_envoys_api_does_not_know_is_named() -> None:
    with pytest.raises(AteError, match=r"'web'.*stat_prefixx"):
        parse(LISTENER, {"name": "web", "stat_prefixx": "a"})


def test_an_extension_that_is_missing_from_our_copy_of_the_api_is_named() -> None:
    config = {"@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo"}
    chain = {"filters": [{"name": "echo", "typed_config": config}]}
    with pytest.raises(AteError, match=r"echo\.v3\.Echo"):
        pack(LISTENER, {"name": "web", "filter_chains": [chain]})


@given(st.one_of(st.text(max_size=12), st.sampled_from(["websocket", "WebSocket", "websockets"])))
def test_every_upgrade_but_websocket_is_ignored(token: str) -> None:
    # Envoy matches the whole value; `.` is not a newline there either, which no header value holds.
    if "\n" in token:
        return
    patterns = [each["safe_regex"]["regex"] for each in ignored_upgrades()]
    ignored = any(re.fullmatch(pattern, token) for pattern in patterns)
    assert ignored == (token.lower() != "websocket" or not token.isascii())
