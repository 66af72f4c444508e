"""TLS contexts of the gateway: towards workers, towards actors under interception, towards origins."""

from __future__ import annotations

from atenet.router.egress_settings import EgressSettings
from atenet.router.resources import tls as shared
from atenet.router.resources.egress import names
from atenet.router.resources.names import Resource, type_url

__all__ = ["egress_secrets", "intercepting_tls", "origin_tls", "tunnel_tls"]

SERVING_CREDENTIAL = "serving-credential"
ACTOR_ROOTS = "actor-roots"
ORIGIN_ROOTS = "origin-roots"

_SELECTOR = "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config"
_BY_NAME = "envoy.extensions.transport_sockets.tls.cert_mappers.sni.v3.SNI"

# A resumed session would skip the check, or the choice, of a certificate.
_NO_RESUMPTION = {
    "disable_stateless_session_resumption": True,
    "disable_stateful_session_resumption": True,
}


def egress_secrets(settings: EgressSettings) -> list[Resource]:
    """Files that are replaced by rename. The interception key is none of them: only sdsmint reads it."""
    return [
        shared.credential(SERVING_CREDENTIAL, settings.envoy_cert_path),
        shared.roots(ACTOR_ROOTS, settings.actor_identity_ca_file),
        shared.roots(ORIGIN_ROOTS, settings.origin_ca_file),
    ]


def tunnel_tls() -> Resource:
    """Requires a certificate of the actor-identity authority. Which one it is, the decision service reads."""
    return shared.socket(
        "DownstreamTlsContext",
        {
            "require_client_certificate": True,
            **_NO_RESUMPTION,
            "common_tls_context": {
                "alpn_protocols": ["http/1.1"],
                "tls_params": shared.VERSIONS,
                "tls_certificate_sds_secret_configs": [shared.reference(SERVING_CREDENTIAL)],
                "validation_context_sds_secret_config": shared.reference(ACTOR_ROOTS),
            },
        },
    )


def intercepting_tls() -> Resource:
    """Shows a leaf that sdsmint mints for the name that the actor asks for."""
    mint = {"envoy_grpc": {"cluster_name": names.CLUSTER_MINT}}
    selector = {
        "@type": type_url(_SELECTOR),
        "certificate_mapper": {
            "name": "sni",
            "typed_config": {"@type": type_url(_BY_NAME), "default_value": names.NO_SERVER_NAME},
        },
        "config_source": {
            "resource_api_version": "V3",
            "initial_fetch_timeout": "5s",
            "api_config_source": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "grpc_services": [mint],
            },
        },
    }
    return shared.socket(
        "DownstreamTlsContext",
        {
            **_NO_RESUMPTION,
            "common_tls_context": {
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_params": shared.VERSIONS,
                "custom_tls_certificate_selector": {"name": "on-demand", "typed_config": selector},
            },
        },
    )


def origin_tls(alpn: list[str]) -> Resource:
    """Verified against the origins' roots; the name comes with each request."""
    return shared.socket(
        "UpstreamTlsContext",
        {
            # A session resumed for one name must not serve another.
            "max_session_keys": 0,
            "common_tls_context": {
                "alpn_protocols": alpn,
                "tls_params": shared.VERSIONS,
                "validation_context_sds_secret_config": shared.reference(ORIGIN_ROOTS),
            },
        },
    )
