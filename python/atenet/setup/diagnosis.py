"""Why a workload does not come up: from what the cluster says of it and its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from atenet.setup.kinds import reference
from atenet.setup.objects.names import Object
from atenet.setup.refusals import hint_for

__all__ = ["Problem", "problems", "progress"]


@dataclass(frozen=True)
class Problem:
    """`patience`: seconds after which waiting on is of no use; None: it may pass at any time."""

    where: str
    reason: str
    message: str
    hint: str | None
    patience: float | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}: {self.message}".rstrip(": ")


# reason of a waiting container -> patience, hint
_WAITING: dict[str, tuple[float, str]] = {
    "ErrImagePull": (
        60,
        "can the nodes reach --image-registry, and is the --image-tag there? (`make images` builds them)",
    ),
    "ImagePullBackOff": (
        30,
        "can the nodes reach --image-registry, and is the --image-tag there? A private registry "
        "needs --image-pull-secrets",
    ),
    "InvalidImageName": (0, "look at --image-registry, --image-tag and images in the values file"),
    "ErrImageNeverPull": (10, "load the image on every node, or change --image-pull-policy"),
    "CreateContainerConfigError": (
        60,
        "a Secret or ConfigMap, or a key of one, is missing; its name is in the message",
    ),
    "CreateContainerError": (60, "the node's runtime refuses the container; its words are above"),
    "RunContainerError": (60, "the node's runtime refuses the container; its words are above"),
    "CrashLoopBackOff": (60, "`kubectl logs` of that container, with --previous, says why it ends"),
}


def progress(workload: Object) -> tuple[bool, str]:
    """Whether a Deployment or DaemonSet has come up as it was last applied, and how far it is."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if workload["kind"] == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        updated, ready = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
        old = 0
    else:
        wanted = spec.get("replicas", 1)
        updated, ready = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
        old = status.get("replicas", 0) - updated
    seen = status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 0)
    done = seen and updated >= wanted and ready >= wanted and old <= 0
    return done, f"{min(updated, ready)} of {wanted}"


def problems(
    workload: Object, sets: Iterable[Object], pods: Iterable[Object], events: Iterable[Object]
) -> list[Problem]:
    """`sets`, `pods`: its ReplicaSets and all its pods; `events`: of the namespace."""
    found = [*_of_conditions(workload)]
    for each in sets:
        if (each.get("spec") or {}).get("replicas"):
            found += _of_conditions(each)
    gathered = list(events)
    found += _of_events(workload, gathered)
    for pod in pods:
        found += _of_pod(pod, gathered)
    return list(dict.fromkeys(found))


def _of_conditions(thing: Object) -> Iterator[Problem]:
    for condition in (thing.get("status") or {}).get("conditions") or []:
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            yield _refused(thing, condition.get("reason", ""), condition.get("message", ""))


def _of_events(workload: Object, events: list[Object]) -> Iterator[Problem]:
    # A DaemonSet has no condition for pods that it may not make; it only says so.
    if workload["kind"] != "DaemonSet":
        return
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("uid") == workload["metadata"].get("uid") and event.get("reason") in (
            "FailedCreate",
            "FailedPlacement",
        ):
            yield _refused(workload, event["reason"], event.get("message", ""))


def _refused(thing: Object, reason: str, message: str) -> Problem:
    hint = hint_for(403 if "forbidden" in message else 0, reason, message)
    return Problem(str(reference(thing)), reason, message, hint, 10)


def _of_pod(pod: Object, events: list[Object]) -> Iterator[Problem]:
    status = pod.get("status") or {}
    where = str(reference(pod))
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield Problem(
                where,
                condition.get("reason", "Unschedulable"),
                condition.get("message", ""),
                "no node has room or may take it: look at resources, nodeSelector and tolerations in the values file",
                120,
            )
    statuses = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    for container in statuses:
        yield from _of_container(where, container)
    if not statuses or any(_creating(each) for each in statuses):
        yield from _mounts(pod, where, events)


def _of_container(where: str, container: dict[str, Any]) -> Iterator[Problem]:
    waiting = (container.get("state") or {}).get("waiting")
    if not waiting or waiting.get("reason") not in _WAITING:
        return
    patience, hint = _WAITING[waiting["reason"]]
    ended = (container.get("lastState") or {}).get("terminated") or {}
    # What it said last: FallbackToLogsOnError puts the end of its log there.
    said = ended.get("message") or waiting.get("message", "")
    yield Problem(
        f"{where}, container {container['name']}", waiting["reason"], said.strip(), hint, patience
    )


def _creating(container: dict[str, Any]) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    return waiting.get("reason") in ("ContainerCreating", "PodInitializing")


def _mounts(pod: Object, where: str, events: list[Object]) -> Iterator[Problem]:
    uid = pod["metadata"].get("uid")
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("uid") == uid and event.get("reason") in ("FailedMount", "FailedAttachVolume"):
            yield Problem(
                where,
                event["reason"],
                event.get("message", ""),
                "certificates and trust come from ate-controller: is it up? A Secret named in the message must exist",
            )
