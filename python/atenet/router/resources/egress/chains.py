"""What is inside a tunnel, once its first bytes have told: HTTP, TLS that is opened, TLS that passes, or a refusal."""

from __future__ import annotations

import base64

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources.egress import names
from atenet.router.resources.egress.access_log import passed_log
from atenet.router.resources.egress.filters import refuse_other
from atenet.router.resources.egress.http import request_manager
from atenet.router.resources.egress.origins import addresses
from atenet.router.resources.egress.tls import intercepting_tls
from atenet.router.resources.names import Resource, type_url

__all__ = ["first_chains", "inside_chains"]

_BY_NAME = "envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig"
_PROXY = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_ANSWER = "envoy.extensions.filters.network.direct_response.v3.Config"


def first_chains(settings: EgressSettings) -> list[Resource]:
    """By the first bytes alone."""
    return [
        {"name": names.CHAIN_HTTP, "filters": [request_manager(names.CHAIN_HTTP, settings)]},
        {"name": names.CHAIN_SERVER_NAME, "filters": [_ask()]},
        {"name": names.CHAIN_OTHER, "filters": [refuse_other(settings), _nowhere()]},
    ]


def inside_chains(settings: EgressSettings) -> list[Resource]:
    """By what was decided at the ClientHello."""
    chains: list[Resource] = [
        {"name": names.CHAIN_PASSTHROUGH, "filters": [_to_address(), _pass(settings)]},
        *(_refuse(description) for description in names.ALERTS),
    ]
    if settings.sdsmint_socket:
        chains.append(
            {
                "name": names.CHAIN_TLS,
                "transport_socket": intercepting_tls(),
                "transport_socket_connect_timeout": f"{settings.header_timeout}s",
                "filters": [request_manager(names.CHAIN_TLS, settings)],
            }
        )
    return chains


def _ask() -> Resource:
    """The connection as a CONNECT to ourselves, as which it can be asked about. Its bytes wait for the answer."""
    name = {
        "header": {"key": names.SERVER_NAME_HEADER, "value": "%REQUESTED_SERVER_NAME%"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": type_url(_PROXY),
            "stat_prefix": names.CHAIN_SERVER_NAME,
            "cluster": names.CLUSTER_DECIDE,
            "idle_timeout": "0s",
            "tunneling_config": {"hostname": "inside.invalid:443", "headers_to_add": [name]},
        },
    }


def _nowhere() -> Resource:
    """A chain has to end in something; no byte gets as far as here."""
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": type_url(_PROXY),
            "stat_prefix": names.CHAIN_OTHER,
            "cluster": names.CLUSTER_NOWHERE,
            "idle_timeout": "0s",
            "upstream_connect_mode": "ON_DOWNSTREAM_DATA",
            "max_early_data_bytes": 1,
        },
    }


def _to_address() -> Resource:
    """The address comes with the connection; no server name is looked at here."""
    return {
        "name": "envoy.filters.network.sni_dynamic_forward_proxy",
        "typed_config": {
            "@type": type_url(_BY_NAME),
            "port_value": 443,
            "dns_cache_config": addresses(),
        },
    }


def _pass(settings: EgressSettings) -> Resource:
    return {
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": {
            "@type": type_url(_PROXY),
            "stat_prefix": names.CHAIN_PASSTHROUGH,
            "cluster": names.CLUSTER_ORIGINS_TCP,
            "idle_timeout": f"{settings.stream_idle_timeout}s",
            "access_log": [passed_log()],
        },
    }


def _refuse(description: int) -> Resource:
    """TLS is refused in its own words: a fatal alert of TLS 1.2, which every version reads before the handshake."""
    alert = base64.b64encode(bytes([21, 3, 3, 0, 2, 2, description])).decode()
    answer = {"@type": type_url(_ANSWER), "response": {"inline_bytes": alert}}
    return {
        "name": names.alert_chain(description),
        "filters": [{"name": "envoy.filters.network.direct_response", "typed_config": answer}],
    }
