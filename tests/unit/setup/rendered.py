"""Configurations, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from atenet.setup.config import Config
from atenet.setup.objects import Cluster, everything

Object = dict[str, Any]

CLIENT = "spiffe://cluster.local/ns/web/sa/frontend"
# Everything that can be asked for.
FULL: dict[str, Any] = {
    "issuer": "https://issuer.example",
    "tokenKeysSecret": "ate-seal",
    "snapshotsSecret": "ate-bucket",
    "snapshotsRegion": "eu-central-1",
    "snapshotsEndpoint": "https://minio.example:9000",
    "people": {
        "issuer": "https://login.example",
        "audiences": ["atenet"],
        "roles": ["admins=owner"],
    },
    "credentialProvider": {
        "address": "ate-credentials.secrets.svc:7447",
        "uriAuthority": "kubernetes.io",
    },
    "egressAllowCidr": ["10.9.0.0/16"],
    "egressNameServer": ["10.96.0.10", "[fd00::10]:5353"],
    "otlpCollector": "otel.monitoring.svc:4318",
    "metricsNamespaces": ["monitoring"],
    "role": ["spiffe://cluster.local/ns/ops/sa/bot=viewer"],
    "imagePullSecrets": ["registry"],
    "routerServiceType": "LoadBalancer",
    "routerServiceAnnotations": {"example.com/lb": "internal"},
    "workerNamespaces": ["ate-workers", "team-a"],
    "pools": [
        {"name": "general"},
        {"name": "big", "namespace": "team-a", "slots": 16, "labels": {"size": "big"}},
    ],
    "scheduling": {"nodeSelector": {"pool": "system"}, "priorityClassName": "high"},
}
# The same with secrets from a provider of its own.
OWN: dict[str, Any] = {
    **{key: value for key, value in FULL.items() if key != "credentialProvider"},
    "credentialAllow": ["team=team-secrets", "team=shared-secrets", "other=shared-secrets"],
    "credentialClass": "secrets.example",
}


def config(dataplane: str = "envoy", **more: Any) -> Config:
    """What an installation cannot do without, and `more`, by the keys of the values file."""
    given = {
        "atenetDataplane": dataplane,
        "ingressAllowedSpiffeIds": [CLIENT],
        "snapshots": "s3://bucket/prefix",
        **more,
    }
    return Config.model_validate(given)


def rendered(given: Config, *, pod_certificates: bool = True) -> list[Object]:
    """The objects."""
    return everything(given, Cluster(pod_certificates=pod_certificates))


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [each for each in objects if each["kind"] in kinds]


def named(objects: list[Object], kind: str, name: str) -> Object:
    (found,) = (each for each in of_kind(objects, kind) if each["metadata"]["name"] == name)
    return found


def pod_specs(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Of each workload, by its name."""
    for each in of_kind(objects, "Deployment", "DaemonSet"):
        yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def containers(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """All of them, also those that come first; `workload/container`."""
    for name, spec in pod_specs(objects):
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            yield f"{name}/{container['name']}", container
