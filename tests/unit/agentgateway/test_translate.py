"""The file's parts as the engine's configuration, and parts that do not fit together."""

import json
from pathlib import Path
from typing import Any

import pytest
from atenet._engine import Router
from atenet.agentgateway import Options, load, parse, router_config
from atenet.agentgateway.model import unused_keys
from atenet.agentgateway.untranslatable import Untranslatable

from tests.unit.agentgateway.files import TLS, config, connect_binds, ingress, text

EXAMPLE = Path(__file__).parents[3] / "examples" / "agentgateway-ingress.yaml"


def translated(data: dict[str, Any], **options: Any) -> dict[str, Any]:
    options.setdefault("bind_address", "127.0.0.1")
    router = router_config(parse(text(data), "file.yaml"), Options(**options))
    Router(json.dumps(router))  # the engine takes it
    return router


def refused(data: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Untranslatable) as caught:
        translated(data)
    return caught.value.problem.path, caught.value.problem.message


def test_the_example_is_what_its_comments_say() -> None:
    file = load(EXAMPLE)
    router = router_config(file, Options("::"))
    Router(json.dumps(router))
    listeners = {
        (entry["name"], entry["address"], entry["protocol"], entry["mode"])
        for entry in router["listeners"]
    }
    assert listeners == {
        ("plain", "[::]:8080", "http", "direct"),
        ("secure", "[::]:8443", "https", "direct"),
        ("connect", "[::]:8081", "http", "connect"),
        ("connect-secure", "[::]:8444", "https", "connect"),
    }
    assert router["drain"] == {"delay_ms": 13_000, "timeout_ms": 30_000}
    assert router["control"]["server_name"] == "api.ate-system.svc"
    assert list(unused_keys(file)) == []


def test_the_smallest_file_has_the_defaults() -> None:
    router = translated(config())
    assert router["parking"] == {}
    assert router["cache"] == {"entries": 200_000}
    assert router["timeouts"] == {"stream_idle_ms": 300_000, "header_ms": 10_000}
    assert router["worker"] == {
        "credentials": {"cert": "pod.pem", "key": "pod.pem"},
        "roots": "roots.pem",
        "connect_port": 8443,
        "handshake_timeout_ms": 5_000,
    }
    assert router["stats_address"] == "127.0.0.1:15020"
    assert router["readiness_address"] == "127.0.0.1:15021"


def test_every_setting_arrives() -> None:
    policy = {
        "connectTargetPort": 9443,
        "cacheTtl": "0s",
        "requestParking": {"budget": "2s", "max": 0, "retryInterval": "50ms", "retryFactor": 0.5},
    }
    router = translated(
        config(
            routes=[ingress(**policy)],
            config={
                "statsAddr": "localhost:0",
                "readinessAddr": "[::1]:0",
                "workerThreads": 3,
                "connectionMinTerminationDeadline": "1s",
                "connectionTerminationDeadline": "9s",
                "backend": {"connectTimeout": "250ms", "poolIdleTimeout": "7s"},
            },
            frontendPolicies={
                "http": {"http1IdleTimeout": "1m"},
                "tls": {"handshakeTimeout": "3s"},
                "tracing": {"host": "otel:4318", "randomSampling": 0.25},
            },
        ),
        access_log=False,
    )
    assert router["worker"]["connect_port"] == 9443
    assert router["worker"]["connect_timeout_ms"] == 250
    assert router["cache"]["ttl_ms"] == 0
    assert router["parking"] == {
        "budget_ms": 2000,
        "max": 0,
        "retry_interval_ms": 50,
        "retry_factor": 1.0,
    }
    expected = {"tls_handshake_ms": 3000, "client_idle_ms": 60_000, "actor_idle_ms": 7000}
    assert router["timeouts"].items() >= expected.items()
    assert (router["stats_address"], router["readiness_address"]) == ("127.0.0.1:0", "[::1]:0")
    assert router["drain"] == {"delay_ms": 1000, "timeout_ms": 8000}
    assert router["threads"] == 3
    assert router["access_log"] is False
    assert router["tracing"] == {
        "collector": "otel:4318",
        "protocol": "http",
        "path": "/v1/traces",
        "random_sampling": 0.25,
        "client_sampling": 1.0,
    }


def test_zeros_of_the_parking_settings_mean_the_defaults() -> None:
    router = translated(
        config(routes=[ingress(requestParking={"budget": "0s", "retryInterval": "0s"})])
    )
    assert router["parking"] == {}


def test_the_control_planes_name_can_differ_from_its_address() -> None:
    policies = {"backendTLS": {**TLS, "hostname": "api.ate-system.svc"}}
    router = translated(config(routes=[ingress(host="127.0.0.1:7443", policies=policies)]))
    assert router["control"]["address"] == "127.0.0.1:7443"
    assert router["control"]["server_name"] == "api.ate-system.svc"


def test_the_tunnelled_policy_may_leave_settings_to_the_direct_one() -> None:
    router = translated(config(routes=[ingress(cacheTtl="7s")], binds=connect_binds()))
    assert router["cache"]["ttl_ms"] == 7000


def test_a_gateway_that_several_routes_name_is_one_listener() -> None:
    routes = [{**ingress(), "gateways": ["a", "b"]}, {**ingress(), "gateways": "b"}]
    router = translated(config(gateways={"a": {"port": 1}, "b": {"port": 2}}, routes=routes))
    assert [entry["name"] for entry in router["listeners"]] == ["a", "b"]


def test_port_0_can_be_asked_for_many_times() -> None:
    binds = connect_binds()
    binds[0]["port"] = 0
    router = translated(config(gateways={"default": {"port": 0}}, binds=binds))
    assert [entry["address"] for entry in router["listeners"]] == ["127.0.0.1:0"] * 2


@pytest.mark.parametrize(
    ("parts", "path", "message"),
    [
        ({"routes": []}, "gateways.default", "no route names this gateway"),
        ({"gateways": {}, "routes": [], "binds": []}, "gateways", "no port to listen on"),
        ({"routes": [{**ingress(), "gateways": "edge"}]}, "routes[0].gateways", "no gateway 'edge'; there is default"),
        (
            {"routes": [ingress(), ingress(host="other:443")]},
            "routes[1].policies.substrateIngress.host",
            "differs from routes[0].policies.substrateIngress.host",
        ),
        (
            {"routes": [ingress(cacheTtl="5s")], "binds": connect_binds(cacheTtl="6s")},
            "binds[1].listeners[0].routes[0].policies.substrateIngress.cacheTtl",
            "one router has one",
        ),
        (
            {"routes": [ingress(requestParking={"max": 1}), ingress(requestParking={"max": 2})]},
            "routes[1].policies.substrateIngress.requestParking.max",
            "differs from routes[0].policies.substrateIngress.requestParking.max",
        ),
        ({"binds": connect_binds()[:1]}, "binds[0]", "needs a bind with mode: internal"),
        ({"binds": connect_binds() + connect_binds()[1:]}, "binds[2]", "only one internal bind"),
        ({"binds": [{"port": 9, "listeners": [{}]}]}, "binds[0].listeners[0].routes", "needs a route"),
        (
            {"binds": [{**connect_binds()[0], "port": 8080}, connect_binds()[1]]},
            "binds[0].port",
            "port 8080 is claimed by gateways.default.port already",
        ),
        (
            {"routes": [{**ingress(), "backends": [{"backend": "/worker"}]}]},
            "routes[0].backends[0].backend",
            "no backend '/worker'; there is /workers",
        ),
        (
            {"routes": [ingress(policies={})]},
            "routes[0].policies.substrateIngress.policies.backendTLS.cert",
            "is required",
        ),
        (
            {"config": {"connectionTerminationDeadline": "10s"}},
            "config.connectionTerminationDeadline",
            "must exceed the park budget (5000 ms)",
        ),
        (
            {"config": {"statsAddr": "metrics.example:9"}},
            "config.statsAddr",
            "localhost or an IP address to listen on, not 'metrics.example'",
        ),
        ({"config": {"readinessAddr": "::1:9"}}, "config.readinessAddr", "not '::1'"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_named(parts, path, message) -> None:
    found = refused(config(**parts))
    assert found[0] == path
    assert message in found[1]


def test_keys_without_effect_are_listed() -> None:
    parsed = parse(
        text(
            config(
                config={"adminAddr": "off", "hbone": {"windowSize": 1}},
                frontendPolicies={"accessLog": {}},
            )
        ),
        "file.yaml",
    )
    assert list(unused_keys(parsed)) == [
        "config.adminAddr",
        "config.hbone",
        "frontendPolicies.accessLog",
    ]
