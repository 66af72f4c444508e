"""Mappings of a configuration file, in camelCase: an unknown key is an error that names the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

__all__ = ["Strict", "dotted", "faults"]

_UNKNOWN_KEYS = "unknown_keys"  # the error type; ctx["keys"] maps each key to its hint


class Strict(BaseModel):
    """One mapping of a file."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = {str(key): cls._hint(str(key), known) for key in data if key not in known}
        if unknown:
            raise PydanticCustomError(_UNKNOWN_KEYS, "unknown keys", {"keys": unknown})
        return data

    @classmethod
    def _hint(cls, key: str, known: set[str]) -> str:
        folded = {name.lower(): name for name in known}
        near = difflib.get_close_matches(key.lower(), folded, n=1)
        if near:
            return f"did you mean `{folded[near[0]]}`?"
        return f"known here: {', '.join(sorted(known))}"


def faults(error: ValidationError) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where in the file, and what is wrong there."""
    for detail in error.errors(include_url=False):
        loc = detail["loc"]
        if detail["type"] == _UNKNOWN_KEYS:
            for key, hint in detail["ctx"]["keys"].items():
                yield (*loc, key), f"unknown key; {hint}"
        else:
            yield loc, _message(detail)


def _message(detail: Any) -> str:
    message: str = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        return "is required"
    return message[:1].lower() + message[1:]


def dotted(path: Sequence[str | int]) -> str:
    """`('a', 0, 'b')` as `a[0].b`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")
