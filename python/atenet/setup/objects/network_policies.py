"""Who may reach whom: everything is denied, and then each way is opened by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atenet.setup.config import Config
from atenet.setup.objects.names import (
    NAMESPACE,
    WORKER,
    WORKER_DENIALS,
    WORKER_PORT,
    WORKER_STATS,
    Component,
    Object,
    Port,
    metadata,
    selector,
)
from atenet.setup.objects.network_peers import (
    Peer,
    Rule,
    blocks,
    from_peers,
    ip_of,
    named,
    pods,
    pods_elsewhere,
    port_of,
    to_peers,
    workers_anywhere,
)

__all__ = ["network_policies"]

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
        *([_credentials()] if config.credential_allow else []),
    ]
    for namespace in config.worker_namespaces:
        made += [_deny(namespace), _workers(config, namespace)]
    return made


def _policy(
    name: str,
    subject: dict[str, Any],
    *,
    namespace: str = NAMESPACE,
    component: Component | None = None,
    came_from: Sequence[Rule] | None = None,
    to: Sequence[Rule] | None = None,
) -> Object:
    """`came_from` and `to`: None leaves that direction to other policies."""
    spec: Object = {"podSelector": subject, "policyTypes": []}
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
    subject = {"matchLabels": selector(component)}
    return _policy(component.value, subject, component=component, came_from=came_from, to=to)


def _ateapi(config: Config) -> Object:
    callers = [
        pods(each)
        for each in (Component.ROUTER, Component.EGRESS, Component.ATELET, Component.CONTROLLER)
    ]
    came_from = [from_peers(callers, Port.API), *_metrics(config, Port.API_STATS)]
    # What is public, and what shows a token to get in: from everywhere, where it is served at all.
    came_from += [from_peers([], Port.ISSUER)] if config.issuer else []
    came_from += [from_peers([], Port.TOKENS)] if config.people else []
    to = [
        to_peers([pods(Component.ATELET)], Port.ATELET),
        to_peers([pods(Component.EGRESS)], Port.DENIALS),
        to_peers([workers_anywhere()], WORKER_DENIALS),
        to_peers(blocks(config.database_cidr), config.database_port),
        *_object_store(config),
        *([to_peers(blocks(_ANYWHERE), port_of(config.people.issuer))] if config.people else []),
        *_collector(config),
    ]
    return _of(Component.API, came_from, to)


def _controller(config: Config) -> Object:
    to = [
        to_peers([pods(Component.API)], Port.API),
        to_peers(blocks(_ANYWHERE), *_API_SERVER),
    ]
    return _of(Component.CONTROLLER, _metrics(config, Port.CONTROLLER_STATS), to)


def _router(config: Config) -> Object:
    plain = () if config.envoy else (Port.HTTP, Port.CONNECT)
    stats = Port.ROUTER_PAGES if config.envoy else Port.STATS
    # Clients are told apart by their certificates, not by where they are.
    came_from = [from_peers([], Port.HTTPS, Port.CONNECT_TLS, *plain), *_metrics(config, stats)]
    to = [
        to_peers([pods(Component.API)], Port.API),
        to_peers([workers_anywhere()], WORKER_PORT),
        *_collector(config),
    ]
    return _of(Component.ROUTER, came_from, to)


def _egress(config: Config) -> Object:
    stats = (Port.ROUTER_PAGES, Port.SDSMINT_PAGES) if config.envoy else (Port.STATS,)
    came_from = [
        from_peers([workers_anywhere()], Port.TUNNELS),
        from_peers([pods(Component.API)], Port.DENIALS),
        *_metrics(config, *stats),
    ]
    origins: list[Peer] = [
        {"ipBlock": {"cidr": cidr, "except": private}} for cidr, private in _PRIVATE.items()
    ]
    to: list[Rule] = [
        to_peers([pods(Component.API)], Port.API),
        {"to": [*origins, *blocks(config.egress_allow_cidr)], "ports": [{"protocol": "TCP"}]},
        *_provider(config),
        *_name_servers(config),
    ]
    return _of(Component.EGRESS, came_from, to)


def _provider(config: Config) -> list[Rule]:
    if config.credential_allow:
        return [to_peers([pods(Component.CREDENTIALS)], Port.CREDENTIALS)]
    if config.credential_provider is None:
        return []
    anywhere = [{"namespaceSelector": {}}, *blocks(_ANYWHERE)]
    return [to_peers(anywhere, config.credential_provider.port)]


def _credentials() -> Object:
    came_from = [from_peers([pods(Component.EGRESS)], Port.CREDENTIALS)]
    return _of(Component.CREDENTIALS, came_from, [to_peers(blocks(_ANYWHERE), *_API_SERVER)])


def _atelet(config: Config, pod_certificates: bool) -> Object:
    to = [to_peers([pods(Component.API)], Port.API), *_object_store(config)]
    if not pod_certificates:
        to.append(to_peers(blocks(_ANYWHERE), *_API_SERVER))
    return _of(Component.ATELET, [from_peers([pods(Component.API)], Port.ATELET)], to)


def _workers(config: Config, namespace: str) -> Object:
    """Their node agent is a Unix socket; what their actors dial leaves through the gateway alone."""
    return _policy(
        "ateworker",
        {"matchLabels": WORKER},
        namespace=namespace,
        came_from=[
            from_peers([pods_elsewhere(Component.ROUTER)], WORKER_PORT),
            from_peers([pods_elsewhere(Component.API)], WORKER_DENIALS),
            *_metrics(config, WORKER_STATS),
        ],
        to=[to_peers([pods_elsewhere(Component.EGRESS)], Port.TUNNELS), *_dns(config)],
    )


def _metrics(config: Config, *ports: int) -> list[Rule]:
    peers = [{"namespaceSelector": named(name)} for name in config.metrics_namespaces]
    return [from_peers(peers, *ports)] if peers else []


def _dns(config: Config) -> list[Rule]:
    servers = [
        {"namespaceSelector": named(config.cluster_dns_namespace)},
        {"ipBlock": {"cidr": _NODE_DNS}},
    ]
    ports = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return [{"to": servers, "ports": ports}]


def _name_servers(config: Config) -> list[Rule]:
    if not config.egress_name_server:
        return []
    peers = blocks(
        [f"{ip_of(each)}/{128 if ':' in ip_of(each) else 32}" for each in config.egress_name_server]
    )
    return [{"to": peers, "ports": [{"protocol": "UDP"}, {"protocol": "TCP"}]}]


def _object_store(config: Config) -> list[Rule]:
    port = port_of(config.snapshots_endpoint) if config.snapshots_endpoint else 443
    return [to_peers(blocks(config.snapshots_cidr), port)]


def _collector(config: Config) -> list[Rule]:
    if config.otlp_collector is None:
        return []
    port = int(config.otlp_collector.rpartition(":")[2])
    return [to_peers([{"namespaceSelector": {}}, *blocks(_ANYWHERE)], port)]
