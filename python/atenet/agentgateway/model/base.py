"""What every part of the file has in common: strict keys, some of AgentGateway's named as such, some unused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field
from pydantic.fields import FieldInfo

from atenet.strict import Strict

__all__ = ["Part", "is_unused", "unused", "unused_keys"]

_UNUSED = "x-atenet-unused"


class Part(Strict):
    """One mapping of the file."""

    # Keys that AgentGateway knows and atenet does not: said so, instead of guessing a typo.
    unsupported: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def _hint(cls, key: str, known: set[str]) -> str:
        if key in cls.unsupported:
            return "AgentGateway has this key, atenet does not support it"
        return super()._hint(key, known)


def unused(default: Any = None) -> Any:
    """A field that is read and has no effect."""
    return Field(default, json_schema_extra={_UNUSED: True})


def is_unused(field: FieldInfo) -> bool:
    """Whether the field was made by `unused`."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get(_UNUSED))


def unused_keys(part: Part, path: str = "") -> Iterator[str]:
    """Paths of the keys that are set in the file and have no effect here."""
    for name, field in type(part).model_fields.items():
        here = f"{path}.{field.alias or name}".lstrip(".")
        if is_unused(field):
            if name in part.model_fields_set:
                yield here
        else:
            yield from _below(getattr(part, name), here)


def _below(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Part):
        yield from unused_keys(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _below(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _below(item, f"{path}[{index}]")
