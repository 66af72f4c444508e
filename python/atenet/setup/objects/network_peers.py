"""Ends of connections, and rules from and to them, as NetworkPolicies say them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from atenet.setup.objects.names import NAMESPACE, WORKER, WORKER_NAMESPACE, Component, selector

__all__ = [
    "Peer",
    "Rule",
    "blocks",
    "from_peers",
    "ip_of",
    "named",
    "pods",
    "pods_elsewhere",
    "port_of",
    "to_peers",
    "workers_anywhere",
]

Peer = dict[str, Any]
Rule = dict[str, Any]


def pods(component: Component) -> Peer:
    """Of the policy's own namespace."""
    return {"podSelector": {"matchLabels": selector(component)}}


def pods_elsewhere(component: Component) -> Peer:
    """Seen from another namespace. Its name's label is the API server's own: nobody else can wear it."""
    return {**pods(component), "namespaceSelector": named(NAMESPACE)}


def workers_anywhere() -> Peer:
    """In namespaces that may have worker pools."""
    return {
        "podSelector": {"matchLabels": WORKER},
        "namespaceSelector": {"matchLabels": WORKER_NAMESPACE},
    }


def named(namespace: str) -> dict[str, Any]:
    """A selector of this namespace."""
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def blocks(cidrs: Sequence[str]) -> list[Peer]:
    """Addresses, wherever they are."""
    return [{"ipBlock": {"cidr": cidr}} for cidr in cidrs]


def from_peers(peers: Sequence[Peer], *ports: int) -> Rule:
    """No peers: everybody."""
    where = {"from": list(peers)} if peers else {}
    return {**where, "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def to_peers(peers: Sequence[Peer], *ports: int) -> Rule:
    """Over TCP."""
    return {"to": list(peers), "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def ip_of(server: str) -> str:
    """Of `IP`, `IP:PORT` or `[IP]:PORT`."""
    if server.startswith("["):
        return server[1:].partition("]")[0]
    return server.partition(":")[0] if server.count(":") == 1 else server


def port_of(url: str) -> int:
    """That it names, or its scheme's."""
    parts = urlsplit(url)
    return parts.port or (80 if parts.scheme == "http" else 443)
