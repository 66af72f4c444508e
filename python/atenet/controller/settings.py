"""What `ate-controller run` can be told: each flag, its default and its why."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from atenet._engine import check_name
from atenet.address import Address
from atenet.errors import AteError
from atenet.flags import flag
from atenet.identity.spiffe import API_SERVER_NAME

__all__ = ["ControllerSettings", "NodeIdentitySettings"]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """One replica. Any number may run; the holder of the lease acts."""

    api: str = flag("Where the control plane is, host:port.")
    api_roots: Path = flag("PEM with the service-DNS authorities, which it must chain to.")
    api_server_name: str = flag("The name it must prove.", default=API_SERVER_NAME)
    credential: Path = flag(
        "PEM with this process's private key and chain, shown to the control plane. The controller "
        "issues it to itself and renews it: in a pod, a directory of its own in memory."
    )
    worker_image: str = flag("Image of Worker Pods, for pools that name none.")
    worker_image_pull_policy: str = flag(
        "When nodes pull it: Always, IfNotPresent or Never.", default="IfNotPresent"
    )
    worker_log_level: str = flag("What workers log: debug, info, warning or error.", default="info")
    pod_certificates: bool = flag(
        "Whether the cluster serves PodCertificateRequest and ClusterTrustBundle (Kubernetes 1.37). "
        "Without them, certificates are Secrets that this controller issues.",
        default=True,
    )
    namespace: str = flag("The namespace of the system's own parts.", default="ate-system")
    watch_namespace: tuple[str, ...] = flag(
        "Namespace whose worker pools are looked after. Repeatable. Default: all.", default=()
    )
    lease_name: str = flag("The Lease that says which replica acts.", default="ate-controller")
    identity: str | None = flag(
        "Name of this replica in the lease. Default: this host's, which is a pod's own.",
        default=None,
    )
    kubeconfig: Path | None = flag(
        "How to reach the cluster from outside. Default: as a pod does.", default=None
    )
    stats_listen: Address = flag(
        "Where to serve /metrics, /readyz and /healthz over plain HTTP.",
        default=Address("127.0.0.1", 0),
        kind=Address.parse,
    )
    ready_file: Path | None = flag(
        "File to make, with the bound addresses as JSON, once it looks after pools or waits to.",
        default=None,
    )
    log_level: str = flag("debug, info, warning or error.", default="info")

    def __post_init__(self) -> None:
        """Raises AteError naming the flag."""
        for name in ("namespace", "lease_name"):
            _check_label(name, getattr(self, name))
        for namespace in self.watch_namespace:
            _check_label("watch_namespace", namespace)
        if self.worker_image_pull_policy not in _PULL_POLICIES:
            known = ", ".join(_PULL_POLICIES)
            raise AteError(
                f"--worker-image-pull-policy {self.worker_image_pull_policy!r} is not one of {known}"
            )
        if not self.worker_image or self.worker_image.split() != [self.worker_image]:
            raise AteError(f"--worker-image {self.worker_image!r} is no image's name")

    @property
    def replica(self) -> str:
        """This process in the lease: another one for each start, so that nobody takes over its own past."""
        return f"{self.identity or socket.gethostname()}_{os.getpid()}"


@dataclass(frozen=True, kw_only=True)
class NodeIdentitySettings:
    """A node agent's certificate, where Kubernetes gives its pod none."""

    directory: Path = flag("Where to keep it, shared with the agent's own container.")
    log_level: str = flag("debug, info, warning or error.", default="info")


def _check_label(field: str, text: str) -> None:
    try:
        check_name(text)
    except ValueError as error:
        raise AteError(f"--{field.replace('_', '-')} {text!r}: {error}") from error
