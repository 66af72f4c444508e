"""Every object of an installation, in the order in which they are applied. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from atenet.errors import AteError
from atenet.setup.config import Config
from atenet.setup.objects.ateapi import ateapi
from atenet.setup.objects.atelet import atelet
from atenet.setup.objects.controller import controller
from atenet.setup.objects.credentials import credentials
from atenet.setup.objects.dataplane import dataplane
from atenet.setup.objects.names import Object
from atenet.setup.objects.namespaces import namespaces
from atenet.setup.objects.network_policies import network_policies
from atenet.setup.objects.pools import definition, pools
from atenet.setup.objects.rbac import rbac

__all__ = ["Cluster", "everything"]

# What others refer to comes first; what starts pods comes when all that pods need is there.
_ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "ConfigMap",
    "NetworkPolicy",
    "Service",
    "PodDisruptionBudget",
    "DaemonSet",
    "Deployment",
    "WorkerPool",
)


@dataclass(frozen=True)
class Cluster:
    """What the objects depend on of where they go."""

    pod_certificates: bool = True


def everything(config: Config, cluster: Cluster) -> list[Object]:
    """Raises AteError: what an installation cannot do without is missing."""
    _check(config)
    certificates = cluster.pod_certificates
    made = [
        *namespaces(config),
        definition(),
        *rbac(config, pod_certificates=certificates),
        *network_policies(config, pod_certificates=certificates),
        *controller(config, pod_certificates=certificates),
        *ateapi(config, pod_certificates=certificates),
        *credentials(config, pod_certificates=certificates),
        *atelet(config, pod_certificates=certificates),
        *dataplane(config, pod_certificates=certificates),
        *pools(config),
    ]
    return sorted(made, key=lambda each: _ORDER.index(each["kind"]))


def _check(config: Config) -> None:
    if config.envoy and not config.ingress_allowed_spiffe_ids:
        raise AteError(
            "--ingress-allowed-spiffe-ids names nobody; on Envoy it is the whole policy of who may come in",
            hint="name the SPIFFE ID of each client, e.g. spiffe://cluster.local/ns/web/sa/frontend, "
            "or choose --atenet-dataplane=agentgateway, which asks clients for nothing",
        )
    if not config.snapshots:
        raise AteError(
            "--snapshots is missing: where sleeping actors are kept",
            hint="name a bucket that all nodes reach: --snapshots=s3://bucket/prefix",
        )
