"""Envoy's bootstrap: where it finds this process, its admin API, and little else."""

from __future__ import annotations

from pathlib import Path

from atenet.address import Address
from atenet.router.envoy_settings import EnvoySettings
from atenet.router.overload import overload_manager
from atenet.router.resources.names import Resource, type_url

__all__ = ["bootstrap"]

NODE_ID = "atenet-router"

# Envoy's own defaults, said aloud where the behaviour that we promise depends on them.
RUNTIME = {
    # A reset of the actor must reach the client as one, across both internal listeners.
    "envoy.reloadable_features.enable_send_rst_on_user_space_socket": True,
    "envoy.reloadable_features.propagate_upstream_rst_through_tunneled_tcp_proxy": True,
    "envoy.reloadable_features.propagate_downstream_rst_to_upstream": True,
    "envoy.reloadable_features.map_http_stream_reset_to_tcp_rst": True,
    # Nothing of an upgraded stream is sent before the actor's 101.
    "envoy.reloadable_features.http_pause_generic_upgrade_request_body": True,
    # Two names of the host are not silently made one: the decision service sees both and refuses.
    "envoy.reloadable_features.http2_discard_host_header": False,
    "envoy.reloadable_features.strict_chunk_parsing": True,
    "envoy.reloadable_features.grpc_timeout_returns_deadline_exceeded": True,
    # As soon as the engine sends its own; Envoy's default is 5 s.
    "tracing.opentelemetry.flush_interval_ms": 500,
}


def bootstrap(settings: EnvoySettings, *, xds_port: int, pressure: Path | None = None) -> Resource:
    """The whole file, in JSON form. `pressure`: see `overload`."""
    return {
        "node": {"id": NODE_ID, "cluster": NODE_ID},
        "admin": {"address": _address(settings.envoy_admin_address)},
        "bootstrap_extensions": [
            {
                "name": "envoy.bootstrap.internal_listener",
                "typed_config": {
                    "@type": type_url(
                        "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"
                    )
                },
            }
        ],
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds", **_soon_again()}}],
            },
            "lds_config": {"ads": {}, "resource_api_version": "V3"},
            "cds_config": {"ads": {}, "resource_api_version": "V3"},
        },
        "static_resources": {"clusters": [_xds_cluster(xds_port)]},
        "overload_manager": overload_manager(settings.max_connections, pressure),
        "layered_runtime": {"layers": [{"name": "atenet", "static_layer": RUNTIME}]},
        "application_log_config": {
            "log_format": {
                "json_format": {
                    "time": "%Y-%m-%dT%T.%e%z",
                    "level": "%l",
                    "logger": "envoy.%n",
                    "message": "%j",
                }
            }
        },
    }


def _soon_again() -> Resource:
    """A router that was restarted is found within a second; Envoy's own pauses grow to half a minute."""
    return {"retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}}}


def _xds_cluster(port: int) -> Resource:
    endpoint = {"endpoint": {"address": _address(Address(host="127.0.0.1", port=port))}}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    keepalive = {"connection_keepalive": {"interval": "30s", "timeout": "10s"}}
    return {
        "name": "xds",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": "xds", "endpoints": [{"lb_endpoints": [endpoint]}]},
        "typed_extension_protocol_options": {
            options: {
                "@type": type_url(options),
                "explicit_http_config": {"http2_protocol_options": keepalive},
            }
        },
    }


def _address(address: Address) -> Resource:
    return {"socket_address": {"address": address.host, "port_value": address.port}}
