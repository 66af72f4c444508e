"""What a pool's status tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from atenet.controller.pool import Condition, WorkerPoolStatus
from atenet.controller.status import pool_status, waiting_for
from atenet.controller.views import Drain, PodView, PoolView, Reason
from lightkube.resources.core_v1 import Pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def status(*pods: PodView, replicas: int = 2, **given: Any) -> WorkerPoolStatus:
    asked = {"generation": 3, "selector": "a=b", "trouble": None, "waiting": None, "before": ()}
    return pool_status(PoolView(replicas, "h"), pods, **{**asked, "now": NOW, **given})


def said(made: WorkerPoolStatus) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in made.conditions}


def pod(name: str, **given: Any) -> PodView:
    return PodView(**{"name": name, "uid": name, "hash": "h", "ready": True, **given})


def test_pods_are_counted_by_what_they_are_there_for() -> None:
    leaving = pod("c", drain=Drain(Reason.SCALE_DOWN, NOW))
    made = status(pod("a"), pod("b", ready=False, hash="old"), leaving, pod("d", terminating=True))
    numbers = (made.replicas, made.ready_replicas, made.updated_replicas, made.draining_replicas)
    assert numbers == (2, 1, 1, 2)
    assert said(made)["Available"] == ("False", "TooFewReady")


def test_a_pool_that_is_as_wanted_says_so() -> None:
    assert said(status(pod("a"), pod("b"))) == {
        "Available": ("True", "EnoughReady"),
        "Progressing": ("False", "AsWanted"),
        "Failing": ("False", "NoTrouble"),
    }


def test_the_time_of_a_condition_is_that_of_its_last_change() -> None:
    first = status(pod("a"), replicas=1)
    later = status(pod("a"), replicas=1, before=first.conditions, now=NOW + timedelta(hours=1))
    assert later.conditions == first.conditions
    worse = status(replicas=1, before=first.conditions, now=NOW + timedelta(hours=1))
    times = {c.type: c.last_transition_time for c in worse.conditions}
    assert times["Available"] != times["Failing"]


def test_what_could_not_be_done_and_what_is_waited_for_are_told() -> None:
    made = status(trouble="Kubernetes: no quota", waiting="pod a: Unschedulable: no node")
    told: dict[str, Condition] = {c.type: c for c in made.conditions}
    assert told["Failing"].message == "Kubernetes: no quota"
    assert told["Progressing"].message.endswith("no node")


def test_kubernetes_own_reasons_are_found() -> None:
    waiting = {"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    waiting["state"] = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    pulling = Pod.from_dict({"metadata": {"name": "a"}, "status": {"containerStatuses": [waiting]}})
    assert waiting_for([pulling]) == "pod a: ImagePullBackOff: no such image"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    unplaced = Pod.from_dict(
        {"metadata": {"name": "b"}, "status": {"conditions": [{**condition, "message": "full"}]}}
    )
    assert waiting_for([unplaced]) == "pod b: Unschedulable: full"
    assert waiting_for([]) is None
