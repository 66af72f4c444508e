"""What an installation consists of: a ConfigMap beside it that says what was applied, and with what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from atenet import __version__
from atenet.setup.api import Api
from atenet.setup.config import Config
from atenet.setup.kinds import Reference
from atenet.setup.objects.names import NAMESPACE, Object, metadata

__all__ = ["INVENTORY", "Inventory", "read", "values_of", "write"]

INVENTORY = Reference("ConfigMap", "ate-setup-inventory", NAMESPACE)


@dataclass(frozen=True)
class Inventory:
    """`values`: what differs from the defaults."""

    objects: frozenset[Reference] = frozenset()
    values: dict[str, Any] = field(default_factory=dict)
    version: str = __version__


def values_of(config: Config) -> dict[str, Any]:
    """What differs from the defaults, as a values file has it. Nothing in it is a secret: secrets are named by name."""
    return config.model_dump(by_alias=True, exclude_defaults=True, mode="json")


def read(api: Api) -> Inventory | None:
    """None: nothing is installed. Raises AteError."""
    found = api.get(INVENTORY)
    if found is None:
        return None
    data = found.get("data") or {}
    return Inventory(
        objects=_references(data.get("objects", "")),
        values=json.loads(data.get("values") or "{}"),
        version=data.get("version", ""),
    )


def write(api: Api, inventory: Inventory) -> None:
    """Raises AteError."""
    api.apply(_config_map(inventory), force=True)


def _config_map(inventory: Inventory) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(INVENTORY.name),
        "data": {
            "objects": _text(inventory.objects),
            "values": json.dumps(inventory.values, indent=2),
            "version": inventory.version,
        },
    }


def _references(text: str) -> frozenset[Reference]:
    return frozenset(Reference.parse(line) for line in text.splitlines() if line)


def _text(references: Iterable[Reference]) -> str:
    return "".join(f"{each}\n" for each in sorted(references))
