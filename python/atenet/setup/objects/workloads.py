"""Deployments and pods: what all components' have in common. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from atenet.setup.config import Config
from atenet.setup.config_parts import Scheduling
from atenet.setup.objects.names import ACCOUNT, Component, Object, labels, metadata, selector

__all__ = ["deployment", "disruption_budget", "grace", "pod_template", "service", "service_account"]

# Between the end of a drain and SIGKILL: for flushing what is left, and for kubelet's own slowness.
_GRACE_MARGIN = 15
# A zone first, then a node; neither keeps a pod from starting where there is only one.
_SPREAD = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")


def grace(*seconds: float) -> int:
    """A termination grace that exceeds these, one after the other."""
    return math.ceil(sum(seconds)) + _GRACE_MARGIN


def service_account(component: Component) -> Object:
    """It is the component's identity. Tokens are mounted only where a pod says so."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(component.account, component),
        "automountServiceAccountToken": False,
    }


def pod_template(
    config: Config,
    component: Component,
    *,
    containers: Sequence[Object],
    volumes: Sequence[Object],
    grace_seconds: int,
    scheduling: Scheduling,
    security: Object | None = None,
    init: Sequence[Object] = (),
    annotations: dict[str, str] | None = None,
) -> Object:
    """`security`: the pod's; default: the account that is not root."""
    spec: Object = {
        "serviceAccountName": component.account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": security or _confined(),
        "containers": list(containers),
        "volumes": list(volumes),
        **_scheduled(scheduling),
    }
    if init:
        spec["initContainers"] = list(init)
    if config.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in config.image_pull_secrets]
    noted = {} if annotations is None else {"annotations": annotations}
    return {"metadata": {"labels": labels(component), **noted}, "spec": spec}


def _confined() -> Object:
    return {
        "runAsNonRoot": True,
        "runAsUser": ACCOUNT,
        "runAsGroup": ACCOUNT,
        # Secrets' files belong to root and this group.
        "fsGroup": ACCOUNT,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _scheduled(given: Scheduling) -> Object:
    found = {
        "nodeSelector": given.node_selector,
        "tolerations": given.tolerations,
        "priorityClassName": given.priority_class_name,
    }
    return {key: value for key, value in found.items() if value}


def deployment(component: Component, replicas: int, template: Object) -> Object:
    """Rolled one new pod at a time, none taken away before its successor is ready."""
    template["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(component)},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in _SPREAD
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(component.value, component),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 3,
            "progressDeadlineSeconds": 300,
            "selector": {"matchLabels": selector(component)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": template,
        },
    }


def service(
    component: Component, name: str, ports: dict[str, tuple[int, int]], **spec: Any
) -> Object:
    """`ports`: name -> (the Service's, the container's)."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, component),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(component),
            "ports": [
                {"name": each, "port": port, "targetPort": target, "protocol": "TCP"}
                for each, (port, target) in ports.items()
            ],
            **spec,
        },
    }


def disruption_budget(component: Component) -> Object:
    """One pod at a time may be evicted; one that is not ready holds nobody up."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(component.value, component),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(component)},
        },
    }
