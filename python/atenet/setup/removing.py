"""Removes an installation: workers first, while their controller still looks after them, and then everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from atenet.errors import AteError
from atenet.setup import inventory as inventories
from atenet.setup.api import Api
from atenet.setup.installing import MARK, present
from atenet.setup.inventory import INVENTORY, Inventory
from atenet.setup.kinds import KINDS, Reference, reference
from atenet.setup.objects.names import Object
from atenet.setup.purging import check_purge, purge_nodes
from atenet.setup.waiting import gone

__all__ = ["Remains", "Removed", "remains", "remove"]

Say = Callable[[str], None]
# Whatever controllers made carries it too: authorities, certificates, trust bundles, Worker Pods.
_PART = {"app.kubernetes.io/part-of": "atenet"}
_POOL_SECONDS = 120.0
_NAMESPACE_SECONDS = 120.0
# Held by somebody's finalizer until that somebody, who is gone then, lets go.
_MADE_BY_OTHERS = ("Pod", "ReplicaSet", "Event", "Node", "PodCertificateRequest")


@dataclass(frozen=True)
class Remains:
    """What an uninstall is about to take away, besides what `install` makes anew."""

    installed: bool
    pools: tuple[str, ...] = ()  # of ours and of others, with their workers
    keys: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        return bool(self.installed or self.pools or self.keys)


@dataclass(frozen=True)
class Removed:
    """How many objects; `unpurged`: nodes that were to be emptied and were not."""

    count: int
    unpurged: tuple[str, ...] = ()


def remains(api: Api) -> Remains:
    """Raises AteError."""
    found = inventories.read(api)
    pools = [
        f"{reference(each)} ({(each.get('status') or {}).get('replicas', 0)} workers)"
        for each in api.list("WorkerPool") or []
    ]
    keys = [
        str(reference(each))
        for each in api.list("Secret", labels=_PART) or []
        if each["metadata"]["name"].startswith("ate-authority-")
    ]
    return Remains(found is not None or bool(present(api)), tuple(pools), tuple(keys))


def remove(
    api: Api, say: Say, *, timeout: float = _POOL_SECONDS, purge_seconds: float | None = None
) -> Removed:
    """`purge_seconds`: how long emptying the nodes may take; None: they stay as they are. Raises AteError:
    something does not go."""
    found = inventories.read(api)
    config = None if purge_seconds is None else check_purge(found)
    found = found or Inventory()
    count = _remove_pools(api, say, timeout)
    ours = _in_order(found.objects | set(present(api)) | set(_parts(api)))
    namespaces = [which for which in ours if which.kind == "Namespace"]
    for which in ours:
        if which.kind != "Namespace" and which != INVENTORY:
            count += api.delete(which)
    ours_alone = [which for which in namespaces if _is_marked(api, which)]
    vanishing = {which.name for which in ours_alone}
    for which in ours:
        # What is in a namespace that goes, goes with it.
        if which.kind != "Namespace" and which != INVENTORY and which.namespace not in vanishing:
            _must_go(api, which, say)
    unpurged: list[str] = []
    if config is not None and purge_seconds is not None:
        unpurged = purge_nodes(api, config, say, timeout=purge_seconds)
    # Last of all, and the record with them: an uninstall that was interrupted finds it and goes on.
    count += _remove_namespaces(api, namespaces, ours_alone, say)
    count += api.delete(INVENTORY)
    return Removed(count, tuple(unpurged))


def _remove_pools(api: Api, say: Say, timeout: float) -> int:
    pools = [reference(each) for each in api.list("WorkerPool") or []]
    for which in pools:
        say(f"draining {which}: its actors are put to sleep")
        api.delete(which)
    for which in pools:
        if not gone(api, which, timeout=timeout, say=say):
            _let_go(api, which, say)
    return len(pools)


def _let_go(api: Api, which: Reference, say: Say) -> None:
    """Nobody works who could: its controller is broken, or gone. What runs is then ended with its namespace."""
    say(f"{which} is not let go by its controller; its finalizer is taken off")
    api.release(which)
    if not gone(api, which, timeout=10, say=say):
        raise AteError(f"{which} does not go", hint=_look(which))


def _parts(api: Api) -> Iterable[Reference]:
    for kind in KINDS:
        if kind not in _MADE_BY_OTHERS:
            for each in api.list(kind, labels=_PART) or []:
                yield reference(each)


def _in_order(some: Iterable[Reference]) -> list[Reference]:
    kinds = list(KINDS)
    return sorted(set(some), key=lambda which: (kinds.index(which.kind), which))


def _must_go(api: Api, which: Reference, say: Say) -> None:
    if not gone(api, which, timeout=30, say=say):
        raise AteError(f"{which} does not go", hint=_look(which))


def _look(which: Reference) -> str:
    place = f" -n {which.namespace}" if which.namespace else ""
    return f"look at its finalizers: kubectl get {which.kind} {which.name}{place} -o yaml"


def _is_marked(api: Api, which: Reference) -> bool:
    found = api.get(which) or {"metadata": {}}
    return MARK in (found["metadata"].get("annotations") or {})


def _remove_namespaces(
    api: Api, some: list[Reference], ours_alone: list[Reference], say: Say
) -> int:
    """Those that we made; of others we take our labels off."""
    count = 0
    for which in some:
        if which in ours_alone:
            count += api.delete(which)
        elif api.get(which) is not None:
            say(f"{which} was there before: it stays, without our labels")
            api.apply(_bare(which), force=True)
    for which in ours_alone:
        if not gone(api, which, timeout=_NAMESPACE_SECONDS, say=say):
            raise AteError(
                f"{which} does not go",
                hint=f"something in it is held: kubectl get namespace {which.name} -o yaml says what",
            )
    return count


def _bare(which: Reference) -> Object:
    """Applied by the same manager, it takes back every field that the manager had."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": which.name}}
