"""Command-line flags from a settings dataclass, so that each is named, typed and told once."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from atenet.errors import AteError

__all__ = ["flag", "flag_name", "options_for", "seconds"]

_S = TypeVar("_S")
_REQUIRED = dataclasses.MISSING
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")


def flag(
    help_text: str, *, default: Any = _REQUIRED, kind: Callable[[str], Any] | None = None
) -> Any:
    """A field of a frozen settings dataclass. `kind` reads the flag's text; else the type does."""
    return dataclasses.field(default=default, metadata={"help": help_text, "kind": kind})


def flag_name(field: str) -> str:
    """`state_dir` is `--state-dir`."""
    return "--" + field.replace("_", "-")


def seconds(text: str | float) -> float:
    """`5s`, `250ms`, `2m`, `1h`, `90d` or a bare number of seconds."""
    match = _DURATION.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 5s or 250ms")
    return float(match[1]) * _UNITS[match[2]]


def options_for(
    settings: type[_S], *, variables: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turns `function(settings, **others)` into one that click can give every flag of `settings` to.

    `others` are parameters of options that stand beside this decorator. With `variables`, each
    flag can also be set by an environment variable: this prefix and the field's name.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        fields = dataclasses.fields(settings)  # type: ignore[arg-type]

        def from_flags(**values: Any) -> None:
            own = {field.name: values.pop(field.name) for field in fields}
            function(_construct(settings, own), **values)

        from_flags.__doc__ = function.__doc__
        from_flags.__name__ = function.__name__
        # What options beside this decorator, applied first, have left for click to collect.
        vars(from_flags).update(vars(function))
        hints = typing.get_type_hints(settings)
        command: Callable[..., None] = from_flags
        for field in reversed(fields):
            variable = None if variables is None else f"{variables}{field.name.upper()}"
            command = _option(field, hints[field.name], variable)(command)
        return command

    return decorate


def _construct(settings: type[_S], values: dict[str, Any]) -> _S:
    try:
        return settings(**values)
    except AteError as e:
        raise click.UsageError(str(e)) from e


def _option(field: dataclasses.Field[Any], hint: Any, variable: str | None) -> Callable[[Any], Any]:
    kind, multiple = _kind(field, hint)
    required = field.default is _REQUIRED
    # Even `default=None` would count for click as a default, and the flag as not missing.
    default: dict[str, Any] = {} if required else {"default": field.default}
    return click.option(
        flag_name(field.name),
        field.name,
        type=kind,
        multiple=multiple,
        required=required,
        **default,
        show_default=not required and field.default not in (None, ()),
        envvar=variable,
        show_envvar=variable is not None,
        help=field.metadata["help"],
    )


def _kind(field: dataclasses.Field[Any], hint: Any) -> tuple[Any, bool]:
    """What click converts the text with, and whether the flag may be repeated."""
    if (custom := field.metadata["kind"]) is not None:
        return custom, False
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return _scalar(arguments[0]), True
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _scalar(arguments[0]), False
    return _scalar(hint), False


def _scalar(hint: Any) -> Any:
    return click.Path(path_type=Path) if hint is Path else hint
