"""TLS contexts. Certificates are file-backed secrets in watched directories: rotation needs no restart."""

from __future__ import annotations

from pathlib import Path

from atenet.router.resources.names import Resource, type_url
from atenet.router.settings import Settings

__all__ = [
    "VERSIONS",
    "credential",
    "downstream_tls",
    "reference",
    "roots",
    "secrets",
    "socket",
    "upstream_tls",
]

_TLS = "envoy.extensions.transport_sockets.tls.v3"

SERVING_CREDENTIAL = "serving-credential"
CLIENT_ROOTS = "client-roots"
WORKER_CREDENTIAL = "worker-credential"
WORKER_ROOTS = "worker-roots"

# What Envoy offers and accepts; the engine's TLS module says the same.
VERSIONS = {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"}


def secrets(settings: Settings) -> list[Resource]:
    """The four secrets, each a file that is replaced by rename."""
    return [
        credential(SERVING_CREDENTIAL, settings.envoy_cert_path),
        credential(WORKER_CREDENTIAL, settings.upstream_credential_bundle),
        roots(CLIENT_ROOTS, settings.ingress_client_ca_file),
        roots(WORKER_ROOTS, settings.upstream_trust_bundle),
    ]


def downstream_tls(settings: Settings, alpn: list[str]) -> Resource:
    """Requires a client certificate whose URI SAN is on the list; refused in the handshake otherwise."""
    allowed = [
        {"san_type": "URI", "matcher": {"exact": spiffe_id}} for spiffe_id in settings.allowed_ids
    ]
    return socket(
        "DownstreamTlsContext",
        {
            "require_client_certificate": True,
            # A resumed session would skip the check of the certificate and of the list.
            "disable_stateless_session_resumption": True,
            "disable_stateful_session_resumption": True,
            "common_tls_context": {
                "alpn_protocols": alpn,
                "tls_params": VERSIONS,
                "tls_certificate_sds_secret_configs": [reference(SERVING_CREDENTIAL)],
                "combined_validation_context": {
                    "default_validation_context": {"match_typed_subject_alt_names": allowed},
                    "validation_context_sds_secret_config": reference(CLIENT_ROOTS),
                },
            },
        },
    )


def upstream_tls(settings: Settings) -> Resource:
    """Towards workers. The exact SPIFFE ID comes with each request; the prefix alone never admits anyone."""
    prefix = {
        "san_type": "URI",
        "matcher": {"prefix": f"spiffe://{settings.upstream_trust_domain}/"},
    }
    return socket(
        "UpstreamTlsContext",
        {
            # A session resumed for one pinned identity must not serve another.
            "max_session_keys": 0,
            "common_tls_context": {
                "alpn_protocols": ["h2"],
                "tls_params": VERSIONS,
                "tls_certificate_sds_secret_configs": [reference(WORKER_CREDENTIAL)],
                "combined_validation_context": {
                    "default_validation_context": {"match_typed_subject_alt_names": [prefix]},
                    "validation_context_sds_secret_config": reference(WORKER_ROOTS),
                },
            },
        },
    )


def socket(message: str, context: Resource) -> Resource:
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {"@type": type_url(f"{_TLS}.{message}"), **context},
    }


def reference(name: str) -> Resource:
    return {"name": name, "sds_config": {"ads": {}, "resource_api_version": "V3"}}


def credential(name: str, bundle: Path) -> Resource:
    # One PEM holds the key and the chain.
    file = {"filename": str(bundle)}
    return {
        "name": name,
        "tls_certificate": {
            "certificate_chain": file,
            "private_key": file,
            "watched_directory": {"path": str(bundle.parent)},
        },
    }


def roots(name: str, bundle: Path) -> Resource:
    return {
        "name": name,
        "validation_context": {
            "trusted_ca": {"filename": str(bundle)},
            "watched_directory": {"path": str(bundle.parent)},
        },
    }
