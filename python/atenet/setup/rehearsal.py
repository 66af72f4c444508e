"""`--dry-run=server`: would the API server accept it? Nothing is changed."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable

from atenet.errors import AteError
from atenet.setup.api import Api
from atenet.setup.config import Config
from atenet.setup.kinds import Reference, reference
from atenet.setup.objects import everything
from atenet.setup.objects.names import Object
from atenet.setup.preflight import discover, missing_namespaces

__all__ = ["rehearse"]

Say = Callable[[str], None]
# One that every cluster has: stands in for a namespace that is not there yet.
_STAND_IN = "default"


def rehearse(api: Api, config: Config, say: Say) -> Counter[str]:
    """How many were `accepted`. Raises AteError naming every object that was not, and why."""
    objects = everything(config, discover(api, config))
    # Ours are made; those of others have to be there.
    lacking = dict(missing_namespaces(api, config))
    refused = [AteError(text, hint=hint) for text, hint in lacking.values()]
    absent = {which for which in _namespaces(objects) if api.get(which) is None}
    counted: Counter[str] = Counter()
    for each in objects:
        which = reference(each)
        if which.kind == "WorkerPool" and api.list("WorkerPool") is None:
            say(f"{which}: not asked: its definition is not there yet")
            continue
        home = Reference("Namespace", which.namespace)
        missing = home in absent or which.namespace in lacking
        try:
            api.apply(_moved(each) if missing else each, dry_run=True)
            counted["accepted"] += 1
        except AteError as error:
            refused.append(error)
    if absent:
        names = ", ".join(sorted(which.name for which in absent))
        say(f"asked in namespace {_STAND_IN}, since these are not there yet: {names}")
    if refused:
        hints = [error.hint for error in refused if error.hint]
        raise AteError(
            "\n".join(error.message for error in refused), hint=hints[0] if hints else None
        )
    return counted


def _namespaces(objects: list[Object]) -> list[Reference]:
    return [reference(each) for each in objects if each["kind"] == "Namespace"]


def _moved(made: Object) -> Object:
    moved = copy.deepcopy(made)
    moved["metadata"]["namespace"] = _STAND_IN
    return moved
