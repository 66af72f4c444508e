"""Envoy's listeners: two on the network, both for known clients only, and two inside Envoy."""

from __future__ import annotations

from atenet.router.resources import names
from atenet.router.resources.clusters import worker_addresses
from atenet.router.resources.http import connect_manager, request_manager
from atenet.router.resources.names import Resource, type_url
from atenet.router.resources.tls import downstream_tls
from atenet.router.settings import Settings

__all__ = ["listeners"]

_RBAC = "envoy.extensions.filters.network.rbac.v3.RBAC"
_URI_SAN = "envoy.extensions.matching.common_inputs.ssl.v3.UriSanInput"


def listeners(settings: Settings) -> list[Resource]:
    alpn = ["h2", "http/1.1"]
    return [
        _public(
            names.CHAIN_INGRESS,
            settings.port_https,
            settings,
            alpn,
            request_manager(names.CHAIN_INGRESS, settings),
        ),
        _public(
            names.CHAIN_CONNECT,
            settings.port_connect_tls,
            settings,
            alpn,
            connect_manager(settings),
        ),
        _internal(names.LISTENER_CONNECTED, [request_manager(names.CHAIN_CONNECTED, settings)]),
        _internal(names.LISTENER_TUNNEL, [_resolve_worker(settings), _tunnel()]),
    ]


def _public(
    chain: str, port: int, settings: Settings, alpn: list[str], manager: Resource
) -> Resource:
    return {
        "name": chain,
        "address": {"socket_address": {"address": settings.listen_address, "port_value": port}},
        "per_connection_buffer_limit_bytes": 1 << 20,
        "filter_chains": [
            {
                "name": chain,
                "transport_socket": downstream_tls(settings, alpn),
                "transport_socket_connect_timeout": f"{settings.header_timeout}s",
                "filters": [_one_identity(settings), manager],
            }
        ],
    }


def _internal(name: str, filters: list[Resource]) -> Resource:
    return {
        "name": name,
        "internal_listener": {},
        # The limit of connections is for clients'; ours are as many as theirs need.
        "ignore_global_conn_limit": True,
        "filter_chains": [{"name": name, "filters": filters}],
    }


def _one_identity(settings: Settings) -> Resource:
    """Closes a connection whose certificate carries any URI beside the listed one.

    The handshake accepts a certificate as soon as one of its names is on the list. Here all of its URIs, joined by
    commas, must equal one entry.
    """
    allow = {
        "action": {
            "name": "allow",
            "typed_config": {
                "@type": type_url("envoy.config.rbac.v3.Action"),
                "name": "listed",
                "action": "ALLOW",
            },
        }
    }
    deny = {
        "action": {
            "name": "deny",
            "typed_config": {
                "@type": type_url("envoy.config.rbac.v3.Action"),
                "name": "unlisted",
                "action": "DENY",
            },
        }
    }
    listed = dict.fromkeys(settings.allowed_ids, allow)
    return {
        "name": "envoy.filters.network.rbac",
        "typed_config": {
            "@type": type_url(_RBAC),
            "stat_prefix": "identity",
            "matcher": {
                "matcher_tree": {
                    "input": {"name": "uri_san", "typed_config": {"@type": type_url(_URI_SAN)}},
                    "exact_match_map": {"map": listed},
                },
                "on_no_match": deny,
            },
        },
    }


def _resolve_worker(settings: Settings) -> Resource:
    message = "envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig"
    return {
        "name": "envoy.filters.network.sni_dynamic_forward_proxy",
        "typed_config": {
            "@type": type_url(message),
            "port_value": settings.worker_port,
            "dns_cache_config": worker_addresses(),
        },
    }


def _tunnel() -> Resource:
    """Each connection from the HTTP side becomes one CONNECT stream to the worker."""
    actor = {
        "header": {"key": names.TARGET_HEADER, "value": f"%FILTER_STATE({names.ACTOR}:PLAIN)%"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": type_url("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"),
            "stat_prefix": "tunnel",
            "cluster": names.CLUSTER_WORKERS,
            "idle_timeout": "0s",
            # No byte of a request is sent before the tunnel is open, so opening it again repeats nothing: a worker
            # that is leaving (GOAWAY, REFUSED_STREAM) is not seen by the client.
            "max_connect_attempts": 2,
            "tunneling_config": {
                "hostname": f"%FILTER_STATE({names.TUNNEL_AUTHORITY}:PLAIN)%",
                "headers_to_add": [actor],
            },
        },
    }
