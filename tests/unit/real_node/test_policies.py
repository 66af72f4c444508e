"""NetworkPolicies as rules of a kernel: those of an installation, on addresses of pods."""

from __future__ import annotations

import subprocess
from typing import Any

from atenet.setup.objects.names import Component, selector

from tests.real_node.policies import ruleset
from tests.unit.setup.rendered import config, rendered

_WORKER = {"app.kubernetes.io/name": "ateworker", "app.kubernetes.io/part-of": "atenet"}


def pod(namespace: str, ip: str, labels: dict[str, str], phase: str = "Running") -> dict[str, Any]:
    status = {"podIP": ip, "phase": phase}
    return {
        "metadata": {"namespace": namespace, "name": ip, "labels": labels},
        "spec": {},
        "status": status,
    }


PODS = [
    pod("ate-system", "10.244.0.2", selector(Component.ROUTER)),
    pod("ate-system", "10.244.0.3", selector(Component.EGRESS)),
    pod("ate-workers", "10.244.0.4", _WORKER),
    pod("ate-workers", "10.244.0.5", _WORKER, phase="Succeeded"),
    pod("web", "10.244.0.6", {}),
]


def rules() -> str:
    objects = rendered(config())
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    policies = [each for each in objects if each["kind"] == "NetworkPolicy"]
    return ruleset(namespaces, policies, PODS)


def chain(name: str) -> list[str]:
    _, _, rest = rules().partition(f"chain {name} {{\n")
    return [line.strip() for line in rest.partition("  }")[0].splitlines()]


def test_the_kernel_takes_the_rules_of_an_installation() -> None:
    done = subprocess.run(
        ["nft", "--check", "-f", "-"], input=rules(), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_worker_is_reached_by_the_router_alone_and_reaches_the_gateway() -> None:
    assert chain("ingress-10-244-0-4") == [
        "ip saddr { 10.244.0.2 } tcp dport 8443-8443 return",
        "counter drop",
    ]
    leaves = chain("egress-10-244-0-4")
    assert "ip daddr { 10.244.0.3 } tcp dport 8443-8443 return" in leaves
    assert leaves[-1] == "counter drop"


def test_a_pod_that_no_policy_selects_has_no_rules_and_one_that_ended_neither() -> None:
    assert "10-244-0-6" not in rules()
    assert "10.244.0.5" not in rules()


def test_the_gateway_reaches_public_addresses_and_no_private_ones() -> None:
    public = [line for line in chain("egress-10-244-0-3") if "10.0.0.0/8" in line]
    assert public
    assert all(line.startswith("ip daddr != {") for line in public)
