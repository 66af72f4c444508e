"""The kinds of objects that ate-setup applies, looks at and removes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atenet.errors import AteError

__all__ = ["KINDS", "Kind", "Reference", "kind_of", "reference"]


@dataclass(frozen=True)
class Kind:
    """How the API server calls it."""

    api: str  # apiVersion
    name: str
    plural: str
    namespaced: bool = True


_RBAC = "rbac.authorization.k8s.io/v1"
_CERTIFICATES = "certificates.k8s.io/v1"

# In the order in which they are removed: what makes others comes before what it makes.
KINDS = {
    kind.name: kind
    for kind in (
        Kind("ate.dev/v1alpha1", "WorkerPool", "workerpools"),
        Kind("apps/v1", "Deployment", "deployments"),
        Kind("apps/v1", "DaemonSet", "daemonsets"),
        Kind("apps/v1", "ReplicaSet", "replicasets"),
        Kind("v1", "Pod", "pods"),
        Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        Kind("v1", "Service", "services"),
        Kind("v1", "ConfigMap", "configmaps"),
        Kind("v1", "Secret", "secrets"),
        Kind("coordination.k8s.io/v1", "Lease", "leases"),
        Kind(_CERTIFICATES, "ClusterTrustBundle", "clustertrustbundles", namespaced=False),
        Kind(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            namespaced=False,
        ),
        Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
        Kind(_RBAC, "RoleBinding", "rolebindings"),
        Kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        Kind(_RBAC, "Role", "roles"),
        Kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False),
        Kind("v1", "ServiceAccount", "serviceaccounts"),
        Kind("v1", "Namespace", "namespaces", namespaced=False),
        # Looked at, never applied.
        Kind(_CERTIFICATES, "PodCertificateRequest", "podcertificaterequests"),
        Kind("v1", "Event", "events"),
        Kind("v1", "Node", "nodes", namespaced=False),
    )
}


@dataclass(frozen=True, order=True)
class Reference:
    """Which object."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """What `str` made."""
        kind, _, rest = text.partition(" ")
        namespace, _, name = rest.rpartition("/")
        return cls(kind, name, namespace)


def kind_of(name: str) -> Kind:
    """Raises AteError: it is none of ours."""
    try:
        return KINDS[name]
    except KeyError:
        raise AteError(f"{name} is no kind that ate-setup knows") from None


def reference(found: dict[str, Any]) -> Reference:
    """Of an object."""
    meta = found["metadata"]
    return Reference(found["kind"], meta["name"], meta.get("namespace", ""))
