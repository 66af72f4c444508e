"""Waits until what was applied runs, tells how far it is, and ends early when waiting is of no use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from atenet.errors import AteError
from atenet.setup.api import Api, owned
from atenet.setup.diagnosis import Problem, problems, progress
from atenet.setup.kinds import Reference
from atenet.setup.objects.names import Object

__all__ = ["NotRunning", "established", "gone", "rolled_out", "trouble"]

_POLL_SECONDS = 1.0
_ESTABLISH_SECONDS = 30.0
Say = Callable[[str], None]


class NotRunning(AteError):
    """Some of it does not come up. `problems`: what stands in the way."""

    def __init__(self, message: str, found: Sequence[Problem]) -> None:
        hints = [each.hint for each in found if each.hint]
        super().__init__(message, hint=hints[0] if hints else "`ate-setup status` shows more")
        self.problems = tuple(found)


def established(api: Api, definition: Reference) -> None:
    """Until the API server serves the custom resource. Raises AteError."""
    ends = time.monotonic() + _ESTABLISH_SECONDS
    while True:
        found = api.get(definition) or {}
        conditions = (found.get("status") or {}).get("conditions") or []
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return
        refused = [
            each
            for each in conditions
            if each["type"] == "NamesAccepted" and each["status"] == "False"
        ]
        if refused or time.monotonic() > ends:
            said = refused[0].get("message", "") if refused else "not served yet"
            raise AteError(f"{definition}: {said}", hint="does another definition have its names?")
        threading.Event().wait(0.05)


def rolled_out(api: Api, workloads: Sequence[Reference], *, timeout: float, say: Say) -> None:
    """Raises NotRunning, with object and reason of everything that stands in the way."""
    ends = time.monotonic() + timeout
    first_seen: dict[Problem, float] = {}
    told: set[str] = set()
    left = list(workloads)
    while left:
        for which in list(left):
            found = api.get(which)
            if found is None:
                raise AteError(f"{which} is gone", hint="who removed it?")
            done, how_far = progress({**found, "kind": which.kind})
            _tell(say, told, f"{which}: {how_far} ready")
            if done:
                left.remove(which)
        standing = {problem: None for which in left for problem in trouble(api, which)}
        for problem in standing:
            _tell(say, told, str(problem))
        now = time.monotonic()
        first_seen = {problem: first_seen.get(problem, now) for problem in standing}
        hopeless = [
            problem
            for problem, since in first_seen.items()
            if problem.patience is not None and now - since >= problem.patience
        ]
        if hopeless:
            raise NotRunning("\n".join(map(str, hopeless)), hopeless)
        if left and now > ends:
            waited = f"not running after {timeout:g} s: {', '.join(map(str, left))}"
            raise NotRunning("\n".join([waited, *map(str, standing)]), list(standing))
        if left:
            threading.Event().wait(_POLL_SECONDS)


def trouble(api: Api, which: Reference) -> list[Problem]:
    """What stands in the way of a Deployment or DaemonSet. Raises AteError."""
    found = api.get(which)
    if found is None:
        return []
    workload: Object = {**found, "kind": which.kind}
    labels = workload["spec"]["selector"]["matchLabels"]
    sets = api.list("ReplicaSet", namespace=which.namespace, labels=labels) or []
    mine = list(owned(sets, workload))
    pods = api.list("Pod", namespace=which.namespace, labels=labels) or []
    events = api.list("Event", namespace=which.namespace) or []
    return problems(workload, mine, pods, events)


def gone(api: Api, which: Reference, *, timeout: float, say: Say) -> bool:
    """Until an object that was deleted is no more. False: it is still there."""
    ends = time.monotonic() + timeout
    told: set[str] = set()
    while (found := api.get(which)) is not None:
        if time.monotonic() > ends:
            return False
        held = ", ".join(found["metadata"].get("finalizers") or [])
        _tell(say, told, f"{which} is going" + (f", held by {held}" if held else ""))
        threading.Event().wait(0.2)
    return True


def _tell(say: Say, told: set[str], text: str) -> None:
    """Each once."""
    if text not in told:
        told.add(text)
        say(text)
