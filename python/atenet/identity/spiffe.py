"""SPIFFE ids and the names that go with them. Pure: strings in, strings out."""

from __future__ import annotations

import re

from atenet.errors import AteError

__all__ = [
    "API_ID",
    "API_SERVER_NAME",
    "ATELET_ID",
    "CLI_ID",
    "CONTROLLER_ID",
    "CREDENTIALS_ID",
    "CREDENTIALS_SERVER_NAME",
    "EGRESS_ID",
    "EGRESS_SERVER_NAME",
    "ROUTER_ID",
    "ROUTER_SERVER_NAME",
    "actor_id",
    "check_node",
    "node_dns_name",
    "parse_node_dns_name",
    "parse_pod_id",
    "pod_dns_name",
    "pod_id",
    "worker_for_actor_id",
]

CLUSTER = "cluster.local"
ACTORS = "substrate-actor.local"

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(_LABEL)
# Clusters name nodes by their host names, dots and all.
_NODE = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# A node's name begins a DNS name, which has 253 characters at most.
_LONGEST_NODE = 200
_POD_ID = re.compile(rf"spiffe://cluster\.local/ns/({_LABEL})/sa/({_LABEL})")


def pod_id(namespace: str, service_account: str) -> str:
    """The id of a pod's ServiceAccount. Raises AteError naming the part that is no label."""
    _check("namespace", namespace)
    _check("service account", service_account)
    return f"spiffe://{CLUSTER}/ns/{namespace}/sa/{service_account}"


def parse_pod_id(spiffe_id: str) -> tuple[str, str]:
    """(namespace, service account) of an id spelled exactly as `pod_id` does. Raises AteError."""
    match = _POD_ID.fullmatch(spiffe_id)
    if match is None:
        raise AteError(
            f"not a pod SPIFFE id: {spiffe_id!r}",
            hint=f"expected spiffe://{CLUSTER}/ns/<namespace>/sa/<service account>",
        )
    return match.group(1), match.group(2)


def pod_dns_name(spiffe_id: str) -> str:
    """The DNS name that every certificate of this pod id also carries.

    gRPC's core can pin a server by DNS name only, so the pod-identity authority derives one
    name from each id (and never another): checking it is checking the id.
    """
    namespace, service_account = parse_pod_id(spiffe_id)
    return f"{service_account}.{namespace}.pod.{CLUSTER}"


def node_dns_name(spiffe_id: str, node: str) -> str:
    """The DNS name that says on which node this pod is: `<node>.<pod's name>`.

    All agents share one SPIFFE id, so only this tells one node's from another's. The authority
    puts it into an agent's certificate beside the pod's own name, and into no other.
    """
    check_node(node)
    return f"{node}.{pod_dns_name(spiffe_id)}"


def check_node(node: str) -> None:
    """A node's name, which may have dots: hosts are called so in many clusters. Raises AteError."""
    if _NODE.fullmatch(node) is None or len(node) > _LONGEST_NODE:
        raise AteError(
            f"node {node!r} is not a valid name",
            hint=f"use a host name in lower case, of at most {_LONGEST_NODE} characters",
        )


def parse_node_dns_name(spiffe_id: str, name: str) -> str | None:
    """The node of a name that `node_dns_name` made for this id; None for any other name."""
    node = name.removesuffix(f".{pod_dns_name(spiffe_id)}")
    return node if node != name and _NODE.fullmatch(node) else None


def actor_id(atespace: str, name: str) -> str:
    """The actor's own id, which credential providers are told. It must not open tunnels."""
    return _actor("actor", atespace, name)


def worker_for_actor_id(atespace: str, name: str) -> str:
    """The id with which a worker opens egress tunnels for this actor."""
    return _actor("worker-for-actor", atespace, name)


def _actor(kind: str, atespace: str, name: str) -> str:
    _check("atespace", atespace)
    _check("actor", name)
    return f"spiffe://{ACTORS}/{kind}/{atespace}/{name}"


def _check(what: str, value: str) -> None:
    # The engine's check_name is the rule for resource names at the edge; identity must also
    # work before the engine is built, and an id may never be made from an unchecked part.
    if _NAME.fullmatch(value) is None:
        raise AteError(
            f"{what} {value!r} is not a valid name",
            hint="use 1-63 of a-z, 0-9 and -, with a letter or digit at each end",
        )


ROUTER_ID = pod_id("ate-system", "atenet-router")
EGRESS_ID = pod_id("ate-system", "atenet-egress")
ATELET_ID = pod_id("ate-system", "atelet")
API_ID = pod_id("ate-system", "ate-api-server")
CONTROLLER_ID = pod_id("ate-system", "ate-controller")
CREDENTIALS_ID = pod_id("ate-system", "ate-credentials")
CLI_ID = pod_id("ate-system", "ate-cli")

API_SERVER_NAME = "api.ate-system.svc"
ROUTER_SERVER_NAME = "atenet-router.ate-system.svc"
EGRESS_SERVER_NAME = "atenet-egress.ate-system.svc"
CREDENTIALS_SERVER_NAME = "ate-credentials.ate-system.svc"
