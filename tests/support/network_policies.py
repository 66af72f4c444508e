"""Who may reach whom under NetworkPolicies, by the rules of Kubernetes: all, until a policy selects an end."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Policy = dict[str, Any]


@dataclass(frozen=True)
class Pod:
    """An end of a connection, inside the cluster."""

    namespace: str
    labels: dict[str, str] = field(default_factory=dict)
    ip: str = "10.244.0.9"
    ports: dict[str, int] = field(default_factory=dict)  # of containers, by name


@dataclass(frozen=True)
class Host:
    """An end outside of it."""

    ip: str


End = Pod | Host


@dataclass(frozen=True)
class Network:
    """The policies, and the labels of namespaces."""

    policies: tuple[Policy, ...]
    namespaces: dict[str, dict[str, str]]

    @classmethod
    def of(cls, objects: Iterable[dict[str, Any]], **others: dict[str, str]) -> Network:
        """`others`: namespaces that are not among the objects."""
        made = list(objects)
        named = {
            each["metadata"]["name"]: each["metadata"].get("labels", {})
            for each in made
            if each["kind"] == "Namespace"
        }
        given = {name.replace("_", "-"): labels for name, labels in others.items()}
        policies = tuple(each for each in made if each["kind"] == "NetworkPolicy")
        return cls(policies, {**named, **given})

    def allows(self, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
        """Whether a connection is let through at both ends."""
        leaves = self._direction("Egress", source, target, target, port, protocol)
        arrives = self._direction("Ingress", target, source, target, port, protocol)
        return leaves and arrives

    def _direction(
        self, kind: str, subject: End, peer: End, target: End, port: int, protocol: str
    ) -> bool:
        if isinstance(subject, Host):
            return True
        selecting = [each for each in self.policies if self._selects(each, subject, kind)]
        if not selecting:
            return True
        rules, peers = ("egress", "to") if kind == "Egress" else ("ingress", "from")
        return any(
            self._peer_matches(rule.get(peers), peer, policy["metadata"]["namespace"])
            and _port_matches(rule.get("ports"), target, port, protocol)
            for policy in selecting
            for rule in policy["spec"].get(rules) or []
        )

    def _selects(self, policy: Policy, pod: Pod, kind: str) -> bool:
        spec = policy["spec"]
        default = ["Ingress", *(["Egress"] if "egress" in spec else [])]
        return (
            policy["metadata"]["namespace"] == pod.namespace
            and kind in spec.get("policyTypes", default)
            and selects(spec["podSelector"], pod.labels)
        )

    def _peer_matches(self, peers: list[Any] | None, end: End, own: str) -> bool:
        # An absent or empty list is everybody.
        return not peers or any(self._one_peer(each, end, own) for each in peers)

    def _one_peer(self, peer: dict[str, Any], end: End, own: str) -> bool:
        if "ipBlock" in peer:
            return _in_block(peer["ipBlock"], end.ip)
        if isinstance(end, Host):
            return False
        if "namespaceSelector" in peer:
            labels = {
                "kubernetes.io/metadata.name": end.namespace,
                **self.namespaces.get(end.namespace, {}),
            }
            if not selects(peer["namespaceSelector"], labels):
                return False
        elif end.namespace != own:
            return False
        return "podSelector" not in peer or selects(peer["podSelector"], end.labels)


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """A label selector: an empty one is everybody."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression(each, labels) for each in selector.get("matchExpressions") or [])


def _expression(given: dict[str, Any], labels: dict[str, str]) -> bool:
    there, operator = given["key"] in labels, given["operator"]
    if operator == "Exists":
        return there
    if operator == "DoesNotExist":
        return not there
    among = labels.get(given["key"]) in given["values"]
    return there and among if operator == "In" else not among


def _in_block(block: dict[str, Any], ip: str) -> bool:
    address = ipaddress.ip_address(ip)

    def inside(cidr: str) -> bool:
        network = ipaddress.ip_network(cidr)
        return network.version == address.version and address in network

    return inside(block["cidr"]) and not any(inside(cidr) for cidr in block.get("except") or [])


def _port_matches(
    ports: list[dict[str, Any]] | None, target: End, port: int, protocol: str
) -> bool:
    if not ports:
        return True
    return any(_one_port(each, target, port, protocol) for each in ports)


def _one_port(given: dict[str, Any], target: End, port: int, protocol: str) -> bool:
    if given.get("protocol", "TCP") != protocol:
        return False
    if "port" not in given:
        return True
    wanted = given["port"]
    if isinstance(wanted, str):
        return isinstance(target, Pod) and target.ports.get(wanted) == port
    return bool(wanted <= port <= given.get("endPort", wanted))
