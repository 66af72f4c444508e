"""A pool's Worker Pod, and the hash of all that a change of makes another pod of. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atenet.controller.cache import Key
from atenet.controller.pool import GROUP, KIND, VERSION, WorkerPoolSpec
from atenet.controller.quantity import quantity
from atenet.identity.spiffe import API_ID

__all__ = [
    "HASH_LABEL",
    "NAME_LETTERS",
    "POOL_LABEL",
    "SELECTOR",
    "PodSettings",
    "pool_labels",
    "template_hash",
    "worker_pod",
]

POOL_LABEL = f"{GROUP}/workerpool"
HASH_LABEL = f"{GROUP}/template-hash"
# All Worker Pods of all pools.
SELECTOR = {"app.kubernetes.io/name": "ateworker", "app.kubernetes.io/part-of": "atenet"}
# As Kubernetes' own: no vowels and nothing that reads like another.
NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

NODE_STATE, NODE_RUN = "/var/lib/ate", "/run/ate/node"
_IDENTITY, _TRUST, _OWN = "/run/ate/identity", "/run/ate/trust", "/run/ate/worker"
_BUNDLE = "credential-bundle.pem"
ATUNNEL_PORT, STATS_PORT, DENIALS_PORT = 8443, 7457, 7448
# What a worker takes to end its actors and say so, with room.
_GRACE_SECONDS = 60


@dataclass(frozen=True)
class PodSettings:
    """What the controller says about every pool's pods."""

    image: str
    image_pull_policy: str = "IfNotPresent"
    pod_certificates: bool = True
    log_level: str = "info"


def pool_labels(pool: str) -> dict[str, str]:
    return {**SELECTOR, POOL_LABEL: pool}


def template_hash(pool: Key, spec: WorkerPoolSpec, settings: PodSettings) -> str:
    """Of everything but the name: two pods of one hash are the same."""
    pod = _spec(pool, spec, settings, "0" * 8, f"{pool.name}-")
    text = json.dumps(pod, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def worker_pod(
    pool: Key, uid: str, spec: WorkerPoolSpec, settings: PodSettings, suffix: str
) -> dict[str, Any]:
    """As it is created. `suffix`: eight letters that no other worker's name ends with."""
    name = f"{pool.name}-{suffix}"
    labels = {**pool_labels(pool.name), HASH_LABEL: template_hash(pool, spec, settings)}
    labels |= {"app.kubernetes.io/component": "worker", "app.kubernetes.io/managed-by": _MANAGER}
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "name": pool.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": name,
        "namespace": pool.namespace,
        "labels": labels,
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _spec(pool, spec, settings, suffix, name),
    }


_MANAGER = "ate-controller"


def _spec(
    pool: Key, spec: WorkerPoolSpec, settings: PodSettings, suffix: str, name: str
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "serviceAccountName": spec.service_account_name or pool.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "containers": [_container(pool, spec, settings, suffix)],
        "volumes": _volumes(settings, name),
        "tolerations": [*(_given(t) for t in spec.tolerations), *_node_loss(spec)],
        # Workers of one pool on different nodes, as far as there are any.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": pool_labels(pool.name)},
            }
        ],
    }
    if spec.node_selector:
        made["nodeSelector"] = dict(spec.node_selector)
    if spec.priority_class_name:
        made["priorityClassName"] = spec.priority_class_name
    return made


def _container(
    pool: Key, spec: WorkerPoolSpec, settings: PodSettings, suffix: str
) -> dict[str, Any]:
    flags = _flags(pool, spec, settings, suffix)
    resources = spec.resources.model_dump(by_alias=True, exclude_defaults=True)
    return {
        "name": "worker",
        "image": spec.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["ateworker"],
        "args": [f"{flag}={value}" for flag, value in flags],
        "env": [
            _field("POD_NAME", "metadata.name"),
            _field("POD_UID", "metadata.uid"),
            _field("POD_IP", "status.podIP"),
        ],
        "ports": [
            {"name": "atunnel", "containerPort": ATUNNEL_PORT},
            {"name": "stats", "containerPort": STATS_PORT},
            {"name": "denials", "containerPort": DENIALS_PORT},
        ],
        # Once it is registered with the node's agent, and so with the control plane.
        "readinessProbe": {
            "exec": {"command": ["test", "-e", f"{_OWN}/ready"]},
            "periodSeconds": 2,
            "failureThreshold": 3,
        },
        # It makes namespaces, networks, cgroups and mounts for its actors, which themselves have no rights.
        "securityContext": {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True},
        "resources": resources,
        "volumeMounts": [
            {"name": "identity", "mountPath": _IDENTITY, "readOnly": True},
            {"name": "trust", "mountPath": _TRUST, "readOnly": True},
            {"name": "own", "mountPath": _OWN},
            # What a killed worker had mounted there must go with it: kubelet could not clear it away.
            {"name": "netns", "mountPath": "/run/netns"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
            # The node's agent and its workers hand each other files and sockets by the same paths.
            {"name": "state", "mountPath": NODE_STATE, "mountPropagation": "HostToContainer"},
            {"name": "node", "mountPath": NODE_RUN},
        ],
    }


def _flags(
    pool: Key, spec: WorkerPoolSpec, settings: PodSettings, suffix: str
) -> list[tuple[str, str | int]]:
    labels = [("--label", f"{key}={spec.labels[key]}") for key in sorted(spec.labels)]
    return [
        ("--name", "$(POD_NAME)"),
        ("--namespace", pool.namespace),
        ("--pool", pool.name),
        ("--service-account", spec.service_account_name or pool.name),
        ("--pod-uid", "$(POD_UID)"),
        ("--ip", "$(POD_IP)"),
        ("--listen", f"0.0.0.0:{ATUNNEL_PORT}"),
        ("--stats-listen", f"0.0.0.0:{STATS_PORT}"),
        # For the control plane, which knows who may look.
        ("--denials-listen", f"0.0.0.0:{DENIALS_PORT}"),
        ("--denials-reader", API_ID),
        ("--sandbox", spec.sandbox_class),
        ("--slots", spec.slots),
        ("--cpu-milli", _capacity(spec, "cpu", 1000)),
        ("--memory-bytes", _capacity(spec, "memory", 1)),
        ("--atelet-socket", f"{NODE_RUN}/atelet.sock"),
        ("--socket", f"{NODE_RUN}/$(POD_NAME).sock"),
        ("--credential", f"{_IDENTITY}/{_BUNDLE}"),
        ("--trust", f"{_TRUST}/pod-identity.pem"),
        ("--egress-gateway-trust", f"{_TRUST}/service-dns.pem"),
        ("--egress-interception-trust", f"{_TRUST}/interception.pem"),
        ("--state-dir", f"{_OWN}/state"),
        ("--ready-file", f"{_OWN}/ready"),
        # No two on a node may share it; what an interrupted run left below it is removed at its start.
        ("--net-prefix", f"w{suffix}-"),
        # The pod's limits are its actors', too.
        ("--cgroup-root", "own"),
        ("--log-level", settings.log_level),
        *labels,
    ]


def _capacity(spec: WorkerPoolSpec, resource: str, unit: int) -> int:
    """What actors may ask for in all: the container's limit, else what it requests; 0: not counted."""
    given = spec.resources.limits.get(resource, spec.resources.requests.get(resource, 0))
    return int(quantity(given) * unit)


def _volumes(settings: PodSettings, name: str) -> list[dict[str, Any]]:
    return [
        {"name": "identity", **_identity(settings, name)},
        {"name": "trust", "configMap": {"name": "ate-trust"}},
        {"name": "own", "emptyDir": {}},
        {"name": "netns", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "state", "hostPath": {"path": NODE_STATE, "type": "DirectoryOrCreate"}},
        {"name": "node", "hostPath": {"path": NODE_RUN, "type": "DirectoryOrCreate"}},
    ]


def _identity(settings: PodSettings, name: str) -> dict[str, Any]:
    if not settings.pod_certificates:
        items = [{"key": _BUNDLE, "path": _BUNDLE}]
        secret = {"secretName": f"ate-identity-{name}", "items": items, "defaultMode": 0o400}
        return {"secret": secret}
    certificate = {
        "signerName": f"{GROUP}/pod-identity",
        "keyType": "ECDSAP256",
        "credentialBundlePath": _BUNDLE,
    }
    return {"projected": {"sources": [{"podCertificate": certificate}], "defaultMode": 0o400}}


def _node_loss(spec: WorkerPoolSpec) -> list[dict[str, Any]]:
    """Kubernetes evicts by itself, but only after five minutes where a pod says nothing."""
    return [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": spec.node_loss_seconds,
        }
        for taint in ("not-ready", "unreachable")
    ]


def _given(model: Any) -> Mapping[str, Any]:
    given: Mapping[str, Any] = model.model_dump(by_alias=True, exclude_none=True)
    return given


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
