"""A faulty file is named by file, line and key."""

from pathlib import Path
from typing import Any

import pytest
from atenet.agentgateway import ConfigFileError, load, parse
from atenet.errors import AteError

from tests.unit.agentgateway.files import config, connect_binds, ingress, text


def problems(data: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigFileError) as caught:
        parse(text(data), "file.yaml")
    return {problem.path: problem.message for problem in caught.value.problems}


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() -> None:
    lines = text(config()).replace("port: 8080", "prot: 8080")
    with pytest.raises(ConfigFileError) as caught:
        parse(lines, "file.yaml")
    assert caught.value.message == (
        "file.yaml:3: gateways.default.prot: unknown key; did you mean `port`?"
    )


@pytest.mark.parametrize(
    ("parts", "path", "message"),
    [
        ({"gatway": {}}, "gatway", "unknown key; did you mean `gateways`?"),
        ({"mcp": {}}, "mcp", "unknown key; AgentGateway has this key, atenet does not support it"),
        (
            {"frontendPolicies": {"x": 1}},
            "frontendPolicies.x",
            "unknown key; known here: accessLog, connect, http, tls, tracing",
        ),
        (
            {"routes": [ingress(cachettl="5s")]},
            "routes[0].policies.substrateIngress.cachettl",
            "unknown key; did you mean `cacheTtl`?",
        ),
        (
            {"routes": [ingress(requestParking={"budgets": "5s"})]},
            "routes[0].policies.substrateIngress.requestParking.budgets",
            "unknown key; did you mean `budget`?",
        ),
        (
            {
                "binds": [
                    {"port": 1, "listeners": [{"tls": {"cert": "a", "key": "b", "root": "c"}}]}
                ]
            },
            "binds[0].listeners[0].tls.root",
            "unknown key; AgentGateway has this key, atenet does not support it",
        ),
    ],
)
def test_unknown_keys_are_named_at_any_depth(parts, path, message) -> None:
    assert problems(config(**parts)) == {path: message}


def test_every_unknown_key_is_named_at_once() -> None:
    found = problems(config(one=1, two=2, config={"three": 3}))
    assert set(found) == {"one", "two"}
    assert set(problems(config(config={"a": 1}, frontendPolicies={"b": 1}))) == {
        "config.a",
        "frontendPolicies.b",
    }


@pytest.mark.parametrize(
    ("parts", "path", "message"),
    [
        ({"routes": [ingress(cacheTtl=5)]}, "routes[0].policies.substrateIngress.cacheTtl", "must be a duration"),
        ({"routes": [ingress(cacheTtl="5 s")]}, "routes[0].policies.substrateIngress.cacheTtl", "must be a duration"),
        ({"routes": [ingress(host="api")]}, "routes[0].policies.substrateIngress.host", "must be host:port"),
        ({"routes": [ingress(host="api:99999")]}, "routes[0].policies.substrateIngress.host", "above 65535"),
        (
            {"routes": [ingress(connectTargetPort=0)]},
            "routes[0].policies.substrateIngress.connectTargetPort",
            "greater than or equal to 1",
        ),
        (
            {"routes": [ingress(requestParking={"max": -1})]},
            "routes[0].policies.substrateIngress.requestParking.max",
            "greater than or equal to 0",
        ),
        ({"gateways": {"default": {"port": "http"}}}, "gateways.default.port", "valid integer"),
        ({"gateways": {"default": {"port": True}}}, "gateways.default.port", "valid integer"),
        ({"gateways": {"default": {"port": 70000}}}, "gateways.default.port", "less than or equal"),
        ({"gateways": {"default": {}}}, "gateways.default.port", "is required"),
        ({"gateways": {"default": {"port": 1, "protocol": "HTTPS"}}}, "gateways.default", "tls is required"),
        (
            {"gateways": {"default": {"port": 1, "protocol": "HTTP", "tls": {"cert": "a", "key": "a"}}}},
            "gateways.default",
            "tls is only for HTTPS",
        ),
        ({"binds": [{"listeners": [{}]}]}, "binds[0]", "port is required unless mode is internal"),
        ({"binds": [{"mode": "internal", "listeners": [{}]}]}, "binds[0]", "needs a route"),
        ({"binds": [{"mode": "internal", "port": 1, "listeners": [{}]}]}, "binds[0]", "has no port"),
        (
            {"binds": [{"port": 1, "tunnelProtocol": "connect", "listeners": [{"routes": [ingress()]}]}]},
            "binds[0]",
            "stand on the internal bind",
        ),
        ({"frontendPolicies": {"tracing": {"host": "x:1", "randomSampling": "request.x"}}},
         "frontendPolicies.tracing.randomSampling", "must be a number from 0 to 1"),
        ({"config": {"workerThreads": 0}}, "config.workerThreads", "greater than or equal to 1"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named(parts, path, message) -> None:
    found = problems(config(**parts))
    assert list(found) == [path]
    assert message in found[path]


def test_text_that_is_no_yaml_is_named_with_its_line() -> None:
    with pytest.raises(ConfigFileError, match=r"^file\.yaml:2: expected ',' or '\]'"):
        parse("a: [1\nb: 2", "file.yaml")


def test_the_hint_says_where_the_keys_are_listed() -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse("x: 1", "file.yaml")
    assert caught.value.hint
    assert "docs/agentgateway.schema.json" in caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(AteError, match=r"cannot read .*missing\.yaml: No such file"):
        load(tmp_path / "missing.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AteError, match="not UTF-8"):
        load(binary)


def test_a_whole_file_is_read() -> None:
    data = config(
        binds=connect_binds(),
        frontendPolicies={"tracing": {"host": "otel.example:4317", "protocol": "grpc", "randomSampling": "true"}},
        config={"adminAddr": "off"},
    )  # fmt: skip
    read = parse(text(data), "file.yaml")
    assert read.frontend_policies.tracing is not None
    assert read.frontend_policies.tracing.random_sampling == 1.0
    assert read.binds[1].mode == "internal"
