"""The peer: the same two hops in stock Envoy, one as router with a static tunnel, one that terminates it.

As we do it, and set up as well as Envoy allows: an HTTP/1.1 connection to the actor inside each CONNECT stream, kept
for reuse; CONNECT streams share one mTLS HTTP/2 connection; as many threads as ours; the same access log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from atenet.identity import spiffe
from atenet.router.binary import find_envoy
from atenet.router.resources.names import type_url

from benchmarks.path.cores import PATH, THREADS
from benchmarks.path.identity import WORKER_ID, BenchIdentity
from benchmarks.path.program import Program, free_port
from benchmarks.path.sides import Side

__all__ = [
    "certificate",
    "cluster",
    "configurations",
    "envoy_path",
    "internal",
    "manager",
    "protocol",
    "tcp_proxy",
    "transport",
]

Json = dict[str, Any]

_TLS = "envoy.extensions.transport_sockets.tls.v3."
_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "envoy.extensions.filters.http.router.v3.Router"
_TCP_PROXY = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_HTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_INTERNAL = "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport"
_RAW = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
_STDERR = "envoy.extensions.access_loggers.stream.v3.StderrAccessLog"
_BOOTSTRAP_INTERNAL = "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"

# The windows of ours.
_WINDOWS = {
    "initial_stream_window_size": 4 << 20,
    "initial_connection_window_size": 16 << 20,
    "max_concurrent_streams": 4096,
}
_UNLIMITED = 1_000_000


@contextmanager
def envoy_path(root: Path, identity: BenchIdentity, origin: str) -> Iterator[Side]:
    """Both Envoys, started and listening."""
    ports = {name: free_port() for name in ("https", "http", "tunnel")}
    with ExitStack() as stack:
        configs = configurations(identity, ports, origin)
        far = stack.enter_context(_envoy(root, "envoy-worker", configs["worker"]))
        far.listens_on(ports["tunnel"])
        near = stack.enter_context(_envoy(root, "envoy-router", configs["router"]))
        near.listens_on(ports["https"])
        https, http = (f"127.0.0.1:{ports[name]}" for name in ("https", "http"))
        yield Side("two Envoys", https, http, near, far)


def configurations(identity: BenchIdentity, ports: dict[str, int], origin: str) -> dict[str, Json]:
    """`router` and `worker`. `ports`: of `https`, `http` and `tunnel` on loopback."""
    return {
        "router": _router(identity, ports),
        "worker": _worker(identity, ports, origin),
    }


def _envoy(root: Path, name: str, config: Json) -> Program:
    file, log = root / f"{name}.json", root / f"{name}.log"
    file.write_text(json.dumps(config))
    command = [find_envoy(None), "-c", file, "--concurrency", str(THREADS)]
    quiet = ["--disable-hot-restart", "--log-level", "error"]
    return Program(name, [*command, *quiet], cores=PATH, log=log, keep_log=False)


def _router(identity: BenchIdentity, ports: dict[str, int]) -> Json:
    route = {"match": {"prefix": "/"}, "route": {"cluster": "actor", "timeout": "0s"}}
    listeners = [
        _listener(
            name, ports[name], manager(name, [route], log=True), _edge(identity) if tls else None
        )
        for name, tls in (("https", True), ("http", False))
    ]
    tunnel = {
        "name": "tunnel",
        "internal_listener": {},
        "filter_chains": [
            {
                "filters": [
                    tcp_proxy("tunnel", "worker", tunneling_config={"hostname": "actor.bench:80"})
                ]
            }
        ],
    }
    clusters = [
        {**_cluster("actor", {"envoy_internal_address": {"server_listener_name": "tunnel"}}),
         **_internal_transport(),
         **protocol({"http_protocol_options": {}}, idle="5s")},
        {**_cluster("worker", _address("127.0.0.1", ports["tunnel"])),
         **_tls("Upstream", identity.router, identity.pods, WORKER_ID),
         **protocol({"http2_protocol_options": _WINDOWS})},
    ]  # fmt: skip
    return {
        **_bootstrap([*listeners, tunnel], clusters),
        "bootstrap_extensions": [
            _typed("envoy.bootstrap.internal_listener", _BOOTSTRAP_INTERNAL),
        ],
    }


def _worker(identity: BenchIdentity, ports: dict[str, int], origin: str) -> Json:
    connect = {
        "match": {"connect_matcher": {}},
        "route": {
            "cluster": "origin",
            "timeout": "0s",
            "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}],
        },
    }
    connecting = manager("tunnel", [connect], log=False)
    tls = _tls("Downstream", identity.worker, identity.pods, spiffe.ROUTER_ID)
    listener = _listener("tunnel", ports["tunnel"], connecting, tls)
    return _bootstrap([listener], [_cluster("origin", _address(origin, 80))])


def _bootstrap(listeners: list[Json], clusters: list[Json]) -> Json:
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _listener(name: str, port: int, managing: Json, tls: Json | None) -> Json:
    chain = {"filters": [managing], **(tls or {})}
    return {"name": name, "address": _address("127.0.0.1", port), "filter_chains": [chain]}


def manager(name: str, routes: list[Json], *, log: bool) -> Json:
    hosts = [{"name": name, "domains": ["*"], "routes": routes}]
    return _typed(
        "envoy.filters.network.http_connection_manager",
        _MANAGER,
        stat_prefix=name,
        generate_request_id=False,
        http2_protocol_options={**_WINDOWS, "allow_connect": True},
        upgrade_configs=[{"upgrade_type": "CONNECT"}],
        stream_idle_timeout="300s",
        route_config={"name": name, "virtual_hosts": hosts},
        http_filters=[_typed("envoy.filters.http.router", _ROUTER, suppress_envoy_headers=True)],
        access_log=[_access_log()] if log else [],
    )


def _access_log() -> Json:
    """What our access log says of a request, as far as Envoy knows it."""
    fields = {
        "time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
        "level": "info",
        "logger": "atenet.access",
        "message": "request",
        "listener": "https",
        "actor": "%REQ(ATE-TARGET-ACTOR)%",
        "method": "%REQ(:METHOD)%",
        "status": "%RESPONSE_CODE%",
        "outcome": "%RESPONSE_CODE_DETAILS%",
        "duration_ms": "%DURATION%",
        "bytes_in": "%BYTES_RECEIVED%",
        "bytes_out": "%BYTES_SENT%",
        "upstream": "%UPSTREAM_HOST%",
    }
    return _typed("envoy.access_loggers.stderr", _STDERR, log_format={"json_format": fields})


def tcp_proxy(name: str, to: str, **more: Any) -> Json:
    """The filter that carries connections to the cluster `to`."""
    return _typed(
        "envoy.filters.network.tcp_proxy",
        _TCP_PROXY,
        stat_prefix=name,
        cluster=to,
        idle_timeout="300s",
        **more,
    )


def _internal_transport() -> Json:
    raw = _typed("envoy.transport_sockets.raw_buffer", _RAW)
    socket = _typed("envoy.transport_sockets.internal_upstream", _INTERNAL, transport_socket=raw)
    return {"transport_socket": socket}


def _edge(identity: BenchIdentity) -> Json:
    shown = certificate(identity.edge)
    context = {"tls_certificates": [shown], "alpn_protocols": ["h2", "http/1.1"]}
    return transport("Downstream", common_tls_context=context)


def _tls(side: str, own: Path, roots: Path, peer: str) -> Json:
    context = {
        "tls_certificates": [certificate(own)],
        "alpn_protocols": ["h2"],
        "validation_context": {
            "trusted_ca": {"filename": str(roots)},
            "match_typed_subject_alt_names": [{"san_type": "URI", "matcher": {"exact": peer}}],
        },
    }
    required = {"require_client_certificate": True} if side == "Downstream" else {}
    return transport(side, common_tls_context=context, **required)


def transport(side: str, **config: Any) -> Json:
    return {
        "transport_socket": _typed(
            "envoy.transport_sockets.tls", f"{_TLS}{side}TlsContext", **config
        )
    }


def certificate(bundle: Path) -> Json:
    return {
        "certificate_chain": {"filename": str(bundle)},
        "private_key": {"filename": str(bundle)},
    }


def cluster(name: str, host: str, port: int) -> Json:
    """A cluster of one address, without limits that a bench could meet."""
    return _cluster(name, _address(host, port))


def internal(name: str) -> Json:
    """A cluster that leads into the internal listener of the same name."""
    address = {"envoy_internal_address": {"server_listener_name": name}}
    return {**_cluster(name, address), **_internal_transport()}


def _cluster(name: str, address: Json) -> Json:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), _UNLIMITED)
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
        "circuit_breakers": {"thresholds": [limits]},
    }


def protocol(explicit: Json, idle: str | None = None) -> Json:
    options: Json = {"@type": type_url(_HTTP), "explicit_http_config": explicit}
    if idle:
        options["common_http_protocol_options"] = {"idle_timeout": idle}
    return {"typed_extension_protocol_options": {_HTTP: options}}


def _address(host: str, port: int) -> Json:
    return {"socket_address": {"address": host, "port_value": port}}


def _typed(name: str, kind: str, **config: Any) -> Json:
    return {"name": name, "typed_config": {"@type": type_url(kind), **config}}
