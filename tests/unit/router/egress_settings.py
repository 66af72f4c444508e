"""Settings for tests of the egress gateway: the required flags point at files that need not exist."""

from pathlib import Path
from typing import Any

from atenet.router.egress_settings import EgressSettings


def egress_settings(**changed: Any) -> EgressSettings:
    files = Path("/nowhere")
    given: dict[str, Any] = {
        "ateapi_ca_file": files / "service-dns.pem",
        "ateapi_client_cert": files / "egress-pod.pem",
        "envoy_cert_path": files / "egress-service.pem",
        "actor_identity_ca_file": files / "actor-identity.pem",
        "sdsmint_socket": files / "sds.sock",
    }
    return EgressSettings(**(given | changed))
