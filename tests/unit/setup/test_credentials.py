"""ate-credentials: there where a namespace was given, with rights in exactly those, and found by the gateway."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.setup.rendered import OWN, Object, config, named, of_kind, pod_specs, rendered

ADDRESS, CLASS = "ate-credentials.ate-system.svc:443", "secrets.example"


def objects(dataplane: str = "envoy", **more: Any) -> list[Object]:
    return rendered(config(dataplane, **{**OWN, **more}))


def words(made: list[Object], workload: str, container: str) -> list[str]:
    spec = dict(pod_specs(made))[workload]
    (found,) = (each for each in spec["containers"] if each["name"] == container)
    return list(found["args"])


@pytest.mark.parametrize(
    "more", [{}, {"credentialProvider": {"address": "a:1", "uriAuthority": "b"}}]
)
def test_it_is_not_there_unless_an_atespace_was_given_a_namespace(more: dict[str, Any]) -> None:
    made = rendered(config(**more))
    assert not [each for each in made if each["metadata"]["name"] == "ate-credentials"]


def test_it_serves_exactly_who_was_given_something() -> None:
    given = [
        word for word in words(objects(), "ate-credentials", "credentials") if "--allow" in word
    ]
    assert given == [f"--allow={each}" for each in OWN["credentialAllow"]]


def test_it_may_read_a_secret_by_name_in_those_namespaces_and_has_no_other_right() -> None:
    made = objects()
    held = [
        each
        for each in of_kind(made, "RoleBinding", "ClusterRoleBinding")
        if any(subject["name"] == "ate-credentials" for subject in each["subjects"])
    ]
    assert {(each["kind"], each["metadata"]["namespace"]) for each in held} == {
        ("RoleBinding", "team-secrets"),
        ("RoleBinding", "shared-secrets"),
    }
    for binding in held:
        (role,) = (
            each
            for each in of_kind(made, "Role")
            if each["metadata"]["name"] == binding["roleRef"]["name"]
            and each["metadata"]["namespace"] == binding["metadata"]["namespace"]
        )
        assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]


def test_namespaces_of_others_are_not_made_and_not_touched() -> None:
    names = {each["metadata"]["name"] for each in of_kind(objects(), "Namespace")}
    assert names == {"ate-system", *OWN["workerNamespaces"]}


def test_the_gateway_on_envoy_asks_it() -> None:
    given = words(objects(), "atenet-egress", "router")
    assert f"--credential-provider-address={ADDRESS}" in given
    assert f"--credential-provider-name={CLASS}" in given
    assert "--credential-provider-server-name=ate-credentials.ate-system.svc" in given


def test_the_gateway_on_agentgateway_asks_it() -> None:
    text = named(objects("agentgateway"), "ConfigMap", "atenet-egress")["data"]["agentgateway.yaml"]
    listeners = yaml.safe_load(text)["binds"][1]["listeners"]
    (provider,) = listeners[0]["routes"][0]["policies"]["substrateEgress"]["credentialProviders"]
    assert provider["uriAuthority"] == CLASS
    assert provider["target"]["host"] == ADDRESS
    tls = provider["target"]["policies"]["backendTLS"]
    assert tls["hostname"] == "ate-credentials.ate-system.svc"
    assert tls["root"].endswith("/service-dns.pem")


def test_what_the_gateway_asks_for_is_what_it_serves() -> None:
    made = objects()
    assert f"--provider-class={CLASS}" in words(made, "ate-credentials", "credentials")
    (port,) = named(made, "Service", "ate-credentials")["spec"]["ports"]
    assert port["port"] == 443
    assert f"--listen=0.0.0.0:{port['targetPort']}" in words(made, "ate-credentials", "credentials")
