"""Applies an installation, removes what an earlier one left over, and waits until it runs. Safe to run again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError
from atenet.setup import inventory as inventories
from atenet.setup.api import Api
from atenet.setup.cluster import Cluster as Server
from atenet.setup.config import Config
from atenet.setup.inventory import INVENTORY, Inventory
from atenet.setup.kinds import KINDS, Reference, reference
from atenet.setup.objects import everything
from atenet.setup.objects.names import MANAGED, NAMESPACE, Object
from atenet.setup.preflight import check_secrets, database_secret, discover
from atenet.setup.purging import stop_purging
from atenet.setup.waiting import established, rolled_out

__all__ = ["MARK", "Options", "install", "leftovers", "present", "what_happened"]

Say = Callable[[str], None]
# On namespaces that were not there before.
MARK = "ate.dev/made-by"
_WORKLOADS = ("Deployment", "DaemonSet")
_CONTROLLERS = "deployment.kubernetes.io/"
# What may carry our labels because a controller copied them from what it belongs to.
_NOT_OURS = ("Pod", "ReplicaSet", "Event", "Node", "PodCertificateRequest")


@dataclass(frozen=True)
class Options:
    """How to go about it; nothing of it is kept."""

    wait: bool = True
    timeout: float = 600.0
    force: bool = False
    database_url_file: Path | None = None
    # Asked before pools go, with their names; None: they may.
    may_remove_pools: Callable[[list[str]], bool] | None = None


def install(server: Server, api: Api, config: Config, options: Options, say: Say) -> Counter[str]:
    """How many objects were `created`, `changed`, `unchanged`, `removed`. Raises AteError."""
    objects = everything(config, discover(api, config))
    check_secrets(api, config, database_url_file=options.database_url_file)
    stop_purging(api, say)
    before = inventories.read(api)
    old = before or Inventory()
    there = present(api)
    counted: Counter[str] = Counter()

    def apply(some: Iterable[Object]) -> None:
        for each in some:
            which = reference(each)
            now = api.apply(each, force=options.force)
            counted[what_happened(there.get(which), now)] += 1
            if which.kind == "CustomResourceDefinition":
                established(api, which)

    wanted = frozenset(map(reference, objects)) | {INVENTORY}
    named = [each for each in objects if each["kind"] == "Namespace"]
    for each in named:
        api.create(marked(each))
    apply(named)
    # From here on an interrupted run is known: what it applied is found, and removed, by the next.
    both = Inventory(old.objects | wanted, inventories.values_of(config))
    inventories.write(api, both)
    say("applying what was made")
    if options.database_url_file is not None:
        api.apply(database_secret(config, options.database_url_file), force=True)
    asyncio.run(_authorities(server))
    apply(each for each in objects if each["kind"] != "Namespace")
    if options.wait:
        workloads = [which for which in map(reference, objects) if which.kind in _WORKLOADS]
        rolled_out(api, workloads, timeout=options.timeout, say=say)
    kept = _remove_leftovers(api, leftovers(old, wanted, present(api)), options, say, counted)
    inventories.write(api, Inventory(wanted | kept, inventories.values_of(config)))
    return counted


def _remove_leftovers(
    api: Api, left: list[Reference], options: Options, say: Say, counted: Counter[str]
) -> frozenset[Reference]:
    """Those that stay: pools that nobody said may go, and the accounts of their workers."""
    pools = [which for which in left if which.kind == "WorkerPool"]
    kept: set[Reference] = set()
    ask = options.may_remove_pools
    if pools and ask is not None and not ask([str(which) for which in pools]):
        kept = {which for which in left if _is_of(which, pools)}
    for which in left:
        if which in kept:
            say(f"{which} is no part of it any more, and stays")
            continue
        say(f"removing {which}, which is no part of it any more")
        counted["removed"] += api.delete(which)
    return frozenset(kept)


def _is_of(which: Reference, pools: list[Reference]) -> bool:
    # Which account a pool has, its own object says; those of its namespace stay with it.
    if which.kind == "ServiceAccount":
        return which.namespace in {pool.namespace for pool in pools}
    return which in pools


async def _authorities(server: Server) -> None:
    """Their keys are made once, where there are none, and never overwritten."""
    from atenet.controller.signing.authorities import ensure_authorities

    client = server.async_client()
    try:
        await ensure_authorities(client, NAMESPACE)
    finally:
        await client.close()


def present(api: Api) -> dict[Reference, Object]:
    """What carries our labels."""
    found: dict[Reference, Object] = {}
    for kind in KINDS:
        if kind not in _NOT_OURS:
            for each in api.list(kind, labels=MANAGED) or []:
                found[reference(each)] = each
    return found


def leftovers(
    old: Inventory, wanted: frozenset[Reference], there: Iterable[Reference]
) -> list[Reference]:
    """In the order of their removal: what was once applied, or carries our labels, and is wanted no more. Pure."""
    kinds = list(KINDS)
    # A namespace takes all that is in it with it: that is an uninstall's to do, and asks first.
    left = {
        which
        for which in (old.objects | set(there)) - wanted
        if which.kind not in ("Namespace", "CustomResourceDefinition", "Secret")
    }
    return sorted(left, key=lambda which: (kinds.index(which.kind), which))


def marked(namespace: Object) -> Object:
    """As it is made where there is none: an uninstall removes what carries the mark, and no namespace of others."""
    meta = namespace["metadata"]
    return {**namespace, "metadata": {**meta, "annotations": {MARK: "ate-setup"}}}


def what_happened(before: Object | None, now: Object) -> str:
    """`created`, `changed` or `unchanged`, by what was asked of it. Pure."""
    if before is None:
        return "created"
    return "unchanged" if _asked(before) == _asked(now) else "changed"


def _asked(found: Object) -> Object:
    """What was asked of it, without what the cluster says of it."""
    passing = ("resourceVersion", "managedFields", "generation")
    meta = {key: value for key, value in found["metadata"].items() if key not in passing}
    # Which revision a Deployment has come to its controller writes there, soon after it is applied.
    noted = meta.pop("annotations", None) or {}
    noted = {key: value for key, value in noted.items() if not key.startswith(_CONTROLLERS)}
    meta = {**meta, "annotations": noted}
    # Items of a list come without their kind.
    others = ("status", "metadata", "apiVersion", "kind")
    rest = {key: value for key, value in found.items() if key not in others}
    return {**rest, "metadata": meta}


def require(found: Inventory | None) -> Inventory:
    """Raises AteError: nothing is installed."""
    if found is None:
        raise AteError(
            "atenet is not installed in this cluster", hint="`ate-setup install` installs it"
        )
    return found
