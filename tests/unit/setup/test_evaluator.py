"""The evaluator itself, by the examples of Kubernetes' own documentation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.network_policies import Host, Network, Pod

DB = Pod("default", {"role": "db"})
FRONTEND = Pod("default", {"role": "frontend"})
OTHER = Pod("default", {"role": "other"})
IN_PROJECT = Pod("project", {"role": "frontend"})


def policy(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "NetworkPolicy",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": spec,
    }


def network(*policies: dict[str, Any]) -> Network:
    return Network(policies, {"project": {"project": "myproject"}})


EXAMPLE = policy(
    podSelector={"matchLabels": {"role": "db"}},
    policyTypes=["Ingress", "Egress"],
    ingress=[
        {
            "from": [
                {"ipBlock": {"cidr": "172.17.0.0/16", "except": ["172.17.1.0/24"]}},
                {"namespaceSelector": {"matchLabels": {"project": "myproject"}}},
                {"podSelector": {"matchLabels": {"role": "frontend"}}},
            ],
            "ports": [{"protocol": "TCP", "port": 6379}],
        }
    ],
    egress=[
        {
            "to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}],
            "ports": [{"protocol": "TCP", "port": 5978}],
        }
    ],
)


@pytest.mark.parametrize(
    ("source", "port", "allowed"),
    [
        (FRONTEND, 6379, True),
        (FRONTEND, 6380, False),
        (OTHER, 6379, False),
        (IN_PROJECT, 6379, True),
        (Pod("elsewhere", {"role": "frontend"}), 6379, False),
        (Host("172.17.0.1"), 6379, True),
        (Host("172.17.1.1"), 6379, False),
        (Host("172.18.0.1"), 6379, False),
    ],
)
def test_peers_of_one_rule_are_alternatives(source: Any, port: int, allowed: bool) -> None:
    assert network(EXAMPLE).allows(source, DB, port) is allowed


def test_egress_is_held_to_its_own_rules() -> None:
    here = network(EXAMPLE)
    assert here.allows(DB, Host("10.0.0.7"), 5978)
    assert not here.allows(DB, Host("10.0.0.7"), 5979)
    assert not here.allows(DB, Host("10.0.1.7"), 5978)
    assert not here.allows(DB, OTHER, 5978)


def test_what_no_policy_selects_is_open() -> None:
    assert network(EXAMPLE).allows(OTHER, FRONTEND, 1)


def test_namespace_and_pod_in_one_peer_are_both_wanted() -> None:
    both = policy(
        podSelector={},
        policyTypes=["Ingress"],
        ingress=[
            {
                "from": [
                    {
                        "namespaceSelector": {"matchLabels": {"project": "myproject"}},
                        "podSelector": {"matchLabels": {"role": "client"}},
                    }
                ]
            }
        ],
    )
    here = network(both)
    assert here.allows(Pod("project", {"role": "client"}), DB, 1)
    assert not here.allows(IN_PROJECT, DB, 1)
    assert not here.allows(Pod("default", {"role": "client"}), DB, 1)


def test_an_empty_rule_is_everybody_and_no_rule_is_nobody() -> None:
    everybody = policy(podSelector={}, policyTypes=["Ingress"], ingress=[{}])
    nobody = policy(podSelector={}, policyTypes=["Ingress"], ingress=[])
    assert network(everybody).allows(Host("1.2.3.4"), DB, 1)
    assert not network(nobody).allows(FRONTEND, DB, 1)
    assert network(nobody, everybody).allows(FRONTEND, DB, 1), "policies add up"


def test_protocols_ranges_and_names_of_ports() -> None:
    here = network(
        policy(
            podSelector={},
            policyTypes=["Ingress"],
            ingress=[
                {"ports": [{"protocol": "UDP", "port": 53}]},
                {"ports": [{"port": 100, "endPort": 200}]},
                {"ports": [{"port": "web"}]},
            ],
        )
    )
    named = Pod("default", ports={"web": 8080})
    assert here.allows(FRONTEND, DB, 53, "UDP")
    assert not here.allows(FRONTEND, DB, 53)
    assert here.allows(FRONTEND, DB, 200)
    assert not here.allows(FRONTEND, DB, 201)
    assert here.allows(FRONTEND, named, 8080)
    assert not here.allows(FRONTEND, DB, 8080)
