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
from atenet.setup.preflight import discover

__all__ = ["rehearse"]

Say = Callable[[str], None]
# One that every cluster has: stands in for a namespace that is not there yet.
_STAND_IN = "default"


def rehearse(api: Api, config: Config, say: Say) -> Counter[str]:
    """How many were `accepted`. Raises AteError naming every object that was not, and why."""
    objects = everything(config, discover(api, config))
    there = {which for which in _namespaces(objects) if api.get(which) is not None}
    refused: list[AteError] = []
    counted: Counter[str] = Counter()
    for each in objects:
        which = reference(each)
        if which.kind == "WorkerPool" and api.list("WorkerPool") is None:
            say(f"{which}: not asked: its definition is not there yet")
            continue
        missing = which.namespace and Reference("Namespace", which.namespace) not in there
        try:
            api.apply(_moved(each) if missing else each, dry_run=True)
            counted["accepted"] += 1
        except AteError as error:
            refused.append(error)
    if missing_names := sorted(which.name for which in _namespaces(objects) if which not in there):
        say(
            f"asked in namespace {_STAND_IN}, since these are not there yet: {', '.join(missing_names)}"
        )
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
