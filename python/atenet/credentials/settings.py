"""What a credential provider is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.flags import flag
from atenet.identity.spiffe import EGRESS_ID

__all__ = ["PROVIDER_CLASS", "CredentialsSettings"]

# Of a system on one machine.
PROVIDER_CLASS = "local.ate"

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class CredentialsSettings:
    listen: str = flag("Where to serve the egress gateway, host:port.", default="127.0.0.1:7447")
    credential: Path = flag("PEM with this provider's private key and certificate chain.")
    trust: Path = flag("PEM with the pod-identity authorities, which callers must chain to.")
    caller: str = flag("SPIFFE ID of the only caller that is answered.", default=EGRESS_ID)
    provider_class: str = flag(
        "The class of the URIs that are served: ate-secret://CLASS/...", default=PROVIDER_CLASS
    )
    directory: Path | None = flag(
        "Secrets as files: ate-secret://CLASS/file/PATH is <directory>/<the actor's atespace>/PATH.",
        default=None,
    )
    environment: str | None = flag(
        "Secrets as variables: ate-secret://CLASS/env/NAME is <this prefix><ATESPACE>__<NAME>, "
        "in capitals, with _ for the atespace's -; NAME has no __ and no _ at an end.",
        default=None,
    )
    kubernetes: str | None = flag(
        "Secrets of a cluster as ate-secret://CLASS/secret/NAMESPACE/SECRET/KEY: its API server, https://host:port.",
        default=None,
    )
    kubernetes_token: Path = flag("File with the token for it.", default=_SERVICE_ACCOUNT / "token")
    kubernetes_ca: Path = flag(
        "PEM with the authorities that it must chain to.", default=_SERVICE_ACCOUNT / "ca.crt"
    )
    allow: tuple[str, ...] = flag(
        "ATESPACE=NAMESPACE: actors of the atespace may have Secrets of that namespace. Others may not.",
        default=(),
    )
    ready_file: Path | None = flag(
        "File to make, with the bound address as JSON, once it serves.", default=None
    )
    log_level: str = flag("debug, info, warning or error.", default="info")
