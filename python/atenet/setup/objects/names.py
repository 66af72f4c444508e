"""Names, ports, paths and labels, said once: objects, NetworkPolicies and documentation agree by them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from atenet.setup.config import NAMESPACE

__all__ = [
    "ACCOUNT",
    "EGRESS_EACH",
    "IDENTITY",
    "MANAGED",
    "NAMESPACE",
    "SERVING",
    "TRUST",
    "TRUSTED_NAMESPACE",
    "WORKER",
    "WORKER_DENIALS",
    "WORKER_NAMESPACE",
    "WORKER_PORT",
    "WORKER_STATS",
    "Component",
    "Object",
    "Port",
    "labels",
    "metadata",
    "selector",
]

# One Kubernetes object, as its YAML has it.
Object = dict[str, Any]

FIELD_MANAGER = "ate-setup"
MANAGED = {"app.kubernetes.io/part-of": "atenet", "app.kubernetes.io/managed-by": FIELD_MANAGER}
# Namespaces with this label may hold worker pools; their Worker Pods are let in to the egress gateway.
WORKER_NAMESPACE = {"ate.dev/workers": "true"}
# ate-controller keeps a copy of the trust bundles there.
TRUSTED_NAMESPACE = {"ate.dev/trust": "true"}
WORKER = {"app.kubernetes.io/name": "ateworker", "app.kubernetes.io/part-of": "atenet"}
# atunnel, /metrics, and recent denials.
WORKER_PORT, WORKER_STATS, WORKER_DENIALS = 8443, 7457, 7448

# A name that all egress gateways answer to, each by its own address.
EGRESS_EACH = "atenet-egress-each"

# Whom containers run as, but for those on the nodes. Envoy, its router and sdsmint share sockets and so this account.
ACCOUNT = 65532

IDENTITY = "/run/ate/identity"
SERVING = "/run/ate/serving"
TRUST = "/run/ate/trust"


class Component(Enum):
    """The value is the name of Deployment or DaemonSet; `account` that of its ServiceAccount, which is its identity."""

    API = "ateapi"
    CONTROLLER = "ate-controller"
    ROUTER = "atenet-router"
    EGRESS = "atenet-egress"
    CREDENTIALS = "ate-credentials"
    ATELET = "atelet"

    @property
    def account(self) -> str:
        return "ate-api-server" if self is Component.API else self.value


class Port:
    """Ports of containers; Services map the contract's to them."""

    API, API_STATS, ISSUER, TOKENS = 7443, 7445, 7446, 7450
    CONTROLLER_STATS = 7455
    ATELET = 7444
    CREDENTIALS = 7447
    DENIALS = 7448
    HTTPS, CONNECT_TLS, HTTP, CONNECT = 8443, 8444, 8080, 8081
    TUNNELS = 8443
    # atenet router beside Envoy: pages; agentgateway: pages, readiness; sdsmint: pages.
    ROUTER_PAGES, STATS, READINESS, SDSMINT_PAGES = 9090, 15020, 15021, 9092
    # On loopback, for the pod alone.
    XDS, EXTPROC, ENVOY_ADMIN, STATUS = 18000, 50051, 9901, 4040


def selector(component: Component) -> dict[str, str]:
    """What picks a component's pods: never changed, as a Deployment's cannot be."""
    return {
        "app.kubernetes.io/name": component.value,
        "app.kubernetes.io/part-of": "atenet",
    }


def labels(component: Component | None = None) -> dict[str, str]:
    """Of every object that ate-setup keeps."""
    if component is None:
        return dict(MANAGED)
    return {**MANAGED, **selector(component), "app.kubernetes.io/component": component.value}


def metadata(
    name: str, component: Component | None = None, *, namespace: str | None = NAMESPACE, **more: Any
) -> Object:
    """`namespace=None`: an object of the whole cluster."""
    place = {} if namespace is None else {"namespace": namespace}
    return {"name": name, **place, "labels": labels(component), **more}
