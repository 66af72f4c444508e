"""Who may reach whom: everything is denied, and then each way is opened by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from atenet.setup.config import Config
from atenet.setup.objects.names import (
    NAMESPACE,
    WORKER,
    WORKER_NAMESPACE,
    WORKER_PORT,
    WORKER_STATS,
    Component,
    Object,
    Port,
    metadata,
    selector,
)

__all__ = ["network_policies"]

Peer = dict[str, Any]
Rule = dict[str, Any]

# Node-local caches of the cluster's DNS listen there.
_NODE_DNS = "169.254.20.10/32"
# Where actors' origins are not: the gateway refuses these by itself, and here nobody carries it there.
_PRIVATE = {
    "0.0.0.0/0": [
        "10.0.0.0/8",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    ],
    "::/0": ["fc00::/7", "fe80::/10"],
}
_ANYWHERE = ("0.0.0.0/0", "::/0")
_API_SERVER = (443, 6443)


def network_policies(config: Config, *, pod_certificates: bool) -> list[Object]:
    """For the components' namespace and for each of the workers'."""
    made = [
        _deny(NAMESPACE),
        _policy("dns", {"matchLabels": {"app.kubernetes.io/part-of": "atenet"}}, to=_dns(config)),
        _ateapi(config),
        _controller(config),
        _router(config),
        _egress(config),
        _atelet(config, pod_certificates),
    ]
    for namespace in config.worker_namespaces:
        made += [_deny(namespace), _workers(config, namespace)]
    return made


def _policy(
    name: str,
    pods: dict[str, Any],
    *,
    namespace: str = NAMESPACE,
    component: Component | None = None,
    came_from: Sequence[Rule] | None = None,
    to: Sequence[Rule] | None = None,
) -> Object:
    """`came_from` and `to`: None leaves that direction to other policies."""
    spec: Object = {"podSelector": pods, "policyTypes": []}
    if came_from is not None:
        spec["policyTypes"].append("Ingress")
        spec["ingress"] = list(came_from)
    if to is not None:
        spec["policyTypes"].append("Egress")
        spec["egress"] = list(to)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(name, component, namespace=namespace),
        "spec": spec,
    }


def _deny(namespace: str) -> Object:
    return _policy("default-deny", {}, namespace=namespace, came_from=[], to=[])


def _of(component: Component, came_from: Sequence[Rule], to: Sequence[Rule]) -> Object:
    pods = {"matchLabels": selector(component)}
    return _policy(component.value, pods, component=component, came_from=came_from, to=to)


def _ateapi(config: Config) -> Object:
    callers = [
        _pods(each)
        for each in (Component.ROUTER, Component.EGRESS, Component.ATELET, Component.CONTROLLER)
    ]
    came_from = [_from(callers, Port.API), *_metrics(config, Port.API_STATS)]
    # What is public, and what shows a token to get in: from everywhere, where it is served at all.
    came_from += [_from([], Port.ISSUER)] if config.issuer else []
    came_from += [_from([], Port.TOKENS)] if config.people else []
    to = [
        _to([_pods(Component.ATELET)], Port.ATELET),
        _to(_blocks(config.database_cidr), config.database_port),
        *_object_store(config),
        *([_to(_blocks(_ANYWHERE), _port_of(config.people.issuer))] if config.people else []),
        *_collector(config),
    ]
    return _of(Component.API, came_from, to)


def _controller(config: Config) -> Object:
    to = [
        _to([_pods(Component.API)], Port.API),
        _to(_blocks(_ANYWHERE), *_API_SERVER),
    ]
    return _of(Component.CONTROLLER, _metrics(config, Port.CONTROLLER_STATS), to)


def _router(config: Config) -> Object:
    plain = () if config.envoy else (Port.HTTP, Port.CONNECT)
    stats = Port.ROUTER_PAGES if config.envoy else Port.STATS
    # Clients are told apart by their certificates, not by where they are.
    came_from = [_from([], Port.HTTPS, Port.CONNECT_TLS, *plain), *_metrics(config, stats)]
    to = [
        _to([_pods(Component.API)], Port.API),
        _to([_workers_anywhere()], WORKER_PORT),
        *_collector(config),
    ]
    return _of(Component.ROUTER, came_from, to)


def _egress(config: Config) -> Object:
    stats = (Port.ROUTER_PAGES, Port.SDSMINT_PAGES) if config.envoy else (Port.STATS,)
    came_from = [_from([_workers_anywhere()], Port.TUNNELS), *_metrics(config, *stats)]
    provider = config.credential_provider
    origins: list[Peer] = [
        {"ipBlock": {"cidr": cidr, "except": private}} for cidr, private in _PRIVATE.items()
    ]
    to: list[Rule] = [
        _to([_pods(Component.API)], Port.API),
        {"to": [*origins, *_blocks(config.egress_allow_cidr)], "ports": [{"protocol": "TCP"}]},
        *(
            [_to([{"namespaceSelector": {}}, *_blocks(_ANYWHERE)], provider.port)]
            if provider
            else []
        ),
        *_name_servers(config),
    ]
    return _of(Component.EGRESS, came_from, to)


def _atelet(config: Config, pod_certificates: bool) -> Object:
    to = [_to([_pods(Component.API)], Port.API), *_object_store(config)]
    if not pod_certificates:
        to.append(_to(_blocks(_ANYWHERE), *_API_SERVER))
    return _of(Component.ATELET, [_from([_pods(Component.API)], Port.ATELET)], to)


def _workers(config: Config, namespace: str) -> Object:
    """Their node agent is a Unix socket; what their actors dial leaves through the gateway alone."""
    return _policy(
        "ateworker",
        {"matchLabels": WORKER},
        namespace=namespace,
        came_from=[
            _from([_components(Component.ROUTER)], WORKER_PORT),
            *_metrics(config, WORKER_STATS),
        ],
        to=[_to([_components(Component.EGRESS)], Port.TUNNELS), *_dns(config)],
    )


def _pods(component: Component) -> Peer:
    """Of the policy's own namespace."""
    return {"podSelector": {"matchLabels": selector(component)}}


def _components(component: Component) -> Peer:
    """Seen from another namespace. Its name's label is the API server's own: nobody else can wear it."""
    return {**_pods(component), "namespaceSelector": _named(NAMESPACE)}


def _workers_anywhere() -> Peer:
    return {
        "podSelector": {"matchLabels": WORKER},
        "namespaceSelector": {"matchLabels": WORKER_NAMESPACE},
    }


def _named(namespace: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def _blocks(cidrs: Sequence[str]) -> list[Peer]:
    return [{"ipBlock": {"cidr": cidr}} for cidr in cidrs]


def _from(peers: Sequence[Peer], *ports: int) -> Rule:
    """No peers: everybody."""
    where = {"from": list(peers)} if peers else {}
    return {**where, "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def _to(peers: Sequence[Peer], *ports: int) -> Rule:
    return {"to": list(peers), "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def _metrics(config: Config, *ports: int) -> list[Rule]:
    peers = [{"namespaceSelector": _named(name)} for name in config.metrics_namespaces]
    return [_from(peers, *ports)] if peers else []


def _dns(config: Config) -> list[Rule]:
    servers = [
        {"namespaceSelector": _named(config.cluster_dns_namespace)},
        {"ipBlock": {"cidr": _NODE_DNS}},
    ]
    ports = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return [{"to": servers, "ports": ports}]


def _name_servers(config: Config) -> list[Rule]:
    if not config.egress_name_server:
        return []
    peers = _blocks(
        [f"{_ip(each)}/{128 if ':' in _ip(each) else 32}" for each in config.egress_name_server]
    )
    return [{"to": peers, "ports": [{"protocol": "UDP"}, {"protocol": "TCP"}]}]


def _ip(server: str) -> str:
    """Of `IP`, `IP:PORT` or `[IP]:PORT`."""
    if server.startswith("["):
        return server[1:].partition("]")[0]
    return server.partition(":")[0] if server.count(":") == 1 else server


def _object_store(config: Config) -> list[Rule]:
    port = _port_of(config.snapshots_endpoint) if config.snapshots_endpoint else 443
    return [_to(_blocks(config.snapshots_cidr), port)]


def _collector(config: Config) -> list[Rule]:
    if config.otlp_collector is None:
        return []
    port = int(config.otlp_collector.rpartition(":")[2])
    return [_to([{"namespaceSelector": {}}, *_blocks(_ANYWHERE)], port)]


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (80 if parts.scheme == "http" else 443)
