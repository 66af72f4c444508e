"""`WorkerPool` as lightkube's client knows it, and what its objects hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lightkube.generic_resource import create_namespaced_resource, get_generic_resource
from pydantic import ValidationError

from atenet.controller.pool import (
    GROUP,
    KIND,
    PLURAL,
    VERSION,
    Condition,
    WorkerPoolSpec,
    WorkerPoolStatus,
)
from atenet.errors import AteError

__all__ = ["WorkerPool", "conditions_of", "spec_of", "status_of"]

WorkerPool: Any = get_generic_resource(f"{GROUP}/{VERSION}", KIND) or create_namespaced_resource(
    GROUP, VERSION, KIND, PLURAL
)


def spec_of(pool: Any) -> WorkerPoolSpec:
    """Raises AteError naming the field. Keys of a later version of the definition are no fault."""
    try:
        return WorkerPoolSpec.model_validate(pool.get("spec") or {}, extra="ignore")
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise AteError(f"spec.{field}: {first['msg']}", hint="change the WorkerPool") from error


def status_of(pool: Any) -> dict[str, Any]:
    return dict(pool.get("status") or {})


def conditions_of(pool: Any) -> Sequence[Condition]:
    """Those that can be read: what a status says is never needed to go on."""
    try:
        status = WorkerPoolStatus.model_validate(status_of(pool), extra="ignore")
    except ValidationError:
        return ()
    return status.conditions
