"""What identity in a cluster is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.controller.signing import names

__all__ = ["SigningSettings"]


@dataclass(frozen=True, kw_only=True)
class SigningSettings:
    """`pod_certificates`: the cluster serves them, and ClusterTrustBundles (Kubernetes 1.37); without
    them, Secrets. `own_credential`: the file that is this process's own certificate, which nobody else
    could sign.
    """

    namespace: str = names.NAMESPACE
    pod_certificates: bool = True
    own_credential: Path | None = None
