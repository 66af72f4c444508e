"""Has every node's directories emptied, once nothing of atenet runs any more, and says where that was not possible."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from atenet.errors import AteError
from atenet.setup.api import Api
from atenet.setup.config import Config
from atenet.setup.diagnosis import progress
from atenet.setup.inventory import Inventory
from atenet.setup.kinds import Reference, reference
from atenet.setup.objects.atelet import NODE_RUN, NODE_STATE
from atenet.setup.objects.names import NAMESPACE, Object
from atenet.setup.objects.purge import PURGE, purge
from atenet.setup.waiting import gone, trouble

__all__ = ["BY_HAND", "check_purge", "purge_nodes", "stop_purging"]

Say = Callable[[str], None]
BY_HAND = f"on each node, as root: rm -rf {NODE_STATE} {NODE_RUN.rpartition('/')[0]}"
_WHICH = Reference("DaemonSet", PURGE, NAMESPACE)
_PART = {"app.kubernetes.io/part-of": "atenet"}
# Workers have a minute to end, routers longer than their drain.
_PODS_SECONDS = 180.0
_POLL_SECONDS = 0.5


def check_purge(found: Inventory | None) -> Config:
    """What was installed, which says where the image is. Raises AteError."""
    if found is None or not found.values:
        raise AteError(
            "--purge-nodes: nothing is installed that says which image to run on the nodes",
            hint=BY_HAND,
        )
    return Config.model_validate(found.values)


def purge_nodes(api: Api, config: Config, say: Say, *, timeout: float) -> list[str]:
    """Nodes that were not emptied in that time. Raises AteError: something runs there yet, and nothing was removed."""
    _nobody_runs(api)
    try:
        api.apply(purge(config), force=True)
        say(f"emptying {NODE_STATE} and {NODE_RUN} on every node")
        return _wait(api, say, timeout)
    finally:
        # However it ends: a node that joins later, or a pod that starts again, would be emptied too.
        api.delete(_WHICH)
        gone(api, _WHICH, timeout=30, say=say)


def stop_purging(api: Api, say: Say) -> None:
    """Before anything of atenet runs again: an uninstall that was killed leaves what empties nodes, whenever one of
    its pods starts. Raises AteError: one does not end."""
    if api.delete(_WHICH):
        say(f"removing {_WHICH}, which an uninstall left")
    _ended(api, _is_ours, "it would empty its node again; nothing was applied")


def _nobody_runs(api: Api) -> None:
    """Whoever still ends may be writing an actor's last files there."""
    _ended(api, lambda pod: not _is_ours(pod), "nothing on nodes was removed")


def _ended(api: Api, counts: Callable[[Object], bool], otherwise: str) -> None:
    """Waits for those pods of atenet. Raises AteError: one stays."""
    ends = time.monotonic() + _PODS_SECONDS
    while running := [
        reference(each) for each in api.list("Pod", labels=_PART) or [] if counts(each)
    ]:
        if time.monotonic() > ends:
            raise AteError(
                f"{running[0]} does not end: {otherwise}",
                hint="is its node gone? kubectl delete pod --force takes its object away",
            )
        threading.Event().wait(_POLL_SECONDS)


def _wait(api: Api, say: Say, timeout: float) -> list[str]:
    ends = time.monotonic() + timeout
    told = ""
    while True:
        found = api.get(_WHICH)
        if found is None:
            raise AteError(f"{_WHICH} is gone", hint="who removed it?")
        done, how_far = progress({**found, "kind": _WHICH.kind})
        if how_far != told:
            say(f"{_WHICH}: {how_far} nodes")
            told = how_far
        if done:
            return []
        if time.monotonic() > ends:
            for problem in trouble(api, _WHICH):
                say(str(problem))
            return sorted(_unready(api))
        threading.Event().wait(_POLL_SECONDS)


def _unready(api: Api) -> set[str]:
    labels = {"app.kubernetes.io/name": PURGE}
    return {
        _node(each)
        for each in api.list("Pod", namespace=NAMESPACE, labels=labels) or []
        if not _ready(each)
    }


def _node(pod: Object) -> str:
    """Where it runs, or, not bound yet, where it is to run."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    wanted = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = wanted.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in terms.get("nodeSelectorTerms", []):
        for field in term.get("matchFields", []):
            return str(field["values"][0])
    return f"that of {reference(pod)}"


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_ours(pod: Object) -> bool:
    meta = pod["metadata"]
    name = str(meta["labels"].get("app.kubernetes.io/name"))
    return (name, str(meta["namespace"])) == (PURGE, NAMESPACE)
