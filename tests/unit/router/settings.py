"""Settings for tests of the router: the required flags point at files that need not exist."""

from pathlib import Path
from typing import Any

from atenet.router.settings import Settings

FRONTEND = "spiffe://cluster.local/ns/web/sa/frontend"


def settings(**changed: Any) -> Settings:
    files = Path("/nowhere")
    given: dict[str, Any] = {
        "ateapi_ca_file": files / "service-dns.pem",
        "ateapi_client_cert": files / "router-pod.pem",
        "envoy_cert_path": files / "router-service.pem",
        "ingress_client_ca_file": files / "pod-identity.pem",
        "ingress_allowed_spiffe_ids": (FRONTEND,),
        "upstream_credential_bundle": files / "router-pod.pem",
        "upstream_trust_bundle": files / "pod-identity.pem",
    }
    return Settings(**(given | changed))
