"""What every part of the file has in common: strict keys, and the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

__all__ = ["UNKNOWN_KEYS", "Part", "is_unused", "unused", "unused_keys"]

UNKNOWN_KEYS = "unknown_keys"  # the error type; ctx["keys"] maps each key to its hint
_UNUSED = "x-atenet-unused"


class Part(BaseModel):
    """One mapping of the file."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    # Keys that AgentGateway knows and atenet does not: said so, instead of guessing a typo.
    unsupported: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = {str(key): cls._hint(str(key), known) for key in data if key not in known}
        if unknown:
            raise PydanticCustomError(UNKNOWN_KEYS, "unknown keys", {"keys": unknown})
        return data

    @classmethod
    def _hint(cls, key: str, known: set[str]) -> str:
        if key in cls.unsupported:
            return "AgentGateway has this key, atenet does not support it"
        folded = {name.lower(): name for name in known}
        near = difflib.get_close_matches(key.lower(), folded, n=1)
        if near:
            return f"did you mean `{folded[near[0]]}`?"
        return f"known here: {', '.join(sorted(known))}"


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
