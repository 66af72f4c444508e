"""Why a workload does not come up, from what the cluster says: object, reason and hint."""

from __future__ import annotations

from typing import Any

import pytest
from atenet.setup.diagnosis import problems, progress

META = {"name": "atenet-router", "namespace": "ate-system", "uid": "u1", "generation": 3}


def deployment(**status: Any) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": META, "spec": {"replicas": 2}, "status": status}


def pod(*statuses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "atenet-router-1", "namespace": "ate-system", "uid": "p1"},
        "status": {"containerStatuses": list(statuses), **more},
    }


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "envoy", "state": {"waiting": {"reason": reason, "message": message}}, **more}


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        ({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}, False),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, False),
    ],
)  # fmt: skip
def test_a_deployment_has_come_up_when_all_of_it_is_new_and_available(
    status: dict[str, Any], done: bool
) -> None:
    assert progress(deployment(**status))[0] is done


def test_a_daemonset_without_a_node_to_run_on_is_done() -> None:
    status = {"observedGeneration": 3, "desiredNumberScheduled": 0}
    assert progress({"kind": "DaemonSet", "metadata": META, "spec": {}, "status": status}) == (
        True,
        "0 of 0",
    )


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("ImagePullBackOff", "--image-registry"),
        ("InvalidImageName", "--image-registry"),
        ("ErrImageNeverPull", "--image-pull-policy"),
        ("CreateContainerConfigError", "Secret or ConfigMap"),
        ("CrashLoopBackOff", "--previous"),
    ],
)
def test_a_container_that_waits_is_told_with_reason_and_hint(reason: str, hint: str) -> None:
    (found,) = problems(deployment(), [], [pod(waiting(reason, "its words"))], [])
    assert str(found) == f"Pod ate-system/atenet-router-1, container envoy: {reason}: its words"
    assert hint in (found.hint or "")
    assert found.patience is not None


def test_a_container_that_is_being_made_is_no_problem() -> None:
    assert not problems(deployment(), [], [pod(waiting("ContainerCreating"))], [])


def test_what_a_crashing_container_said_last_is_shown() -> None:
    ended = {"terminated": {"message": "error: --store: cannot read /run/ate/store/url\n"}}
    crash = waiting("CrashLoopBackOff", "back-off 20s", lastState=ended)
    (found,) = problems(deployment(), [], [pod(crash)], [])
    assert "cannot read /run/ate/store/url" in found.message


def test_a_pod_that_no_node_takes_is_told() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
    }
    (found,) = problems(deployment(), [], [pod(conditions=[condition])], [])
    assert "Unschedulable: 0/3 nodes" in str(found)
    assert "resources" in (found.hint or "")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ('pods "a" is forbidden: exceeded quota: small, requested: cpu=1', "ResourceQuota"),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged', "pod-security"),
        ('pods "a" is forbidden: error looking up service account', "cluster-admin"),
    ],
)  # fmt: skip
def test_pods_that_may_not_be_made_are_told(message: str, hint: str) -> None:
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
    }
    (found,) = problems(deployment(conditions=[condition]), [], [], [])
    assert str(found) == f"Deployment ate-system/atenet-router: FailedCreate: {message}"
    assert hint in (found.hint or "")


def test_a_daemonset_says_it_in_its_events() -> None:
    daemonset = {"kind": "DaemonSet", "metadata": META, "spec": {}, "status": {}}
    event = {
        "involvedObject": {"uid": "u1"},
        "reason": "FailedCreate",
        "message": 'pods "a" is forbidden: violates PodSecurity "baseline:latest"',
    }
    other = {**event, "involvedObject": {"uid": "u2"}}
    (found,) = problems(daemonset, [], [], [event, other, event])
    assert "violates PodSecurity" in str(found)


def test_a_volume_that_is_not_there_is_told_by_its_event() -> None:
    event = {
        "involvedObject": {"uid": "p1"},
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "trust": configmap "ate-trust" not found',
    }
    (found,) = problems(deployment(), [], [pod(waiting("ContainerCreating"))], [event])
    assert "ate-trust" in str(found)
    assert "ate-controller" in (found.hint or "")
    assert found.patience is None, "it comes up by itself when the controller does"
