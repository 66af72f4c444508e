"""Every scalar of the configuration as a flag and as a variable, `ATE_SETUP_...`, from the one model."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from pydantic_core import PydanticUndefined

from atenet.flags import flag_name
from atenet.setup.config import Config

__all__ = ["VARIABLES", "config_options", "flag_fields"]

VARIABLES = "ATE_SETUP_"
_Command = Callable[..., None]


def flag_fields() -> list[str]:
    """The fields that are flags: text, numbers, choices and lists of text."""
    return [name for name in Config.model_fields if _kind(name) is not None]


def config_options(command: _Command) -> _Command:
    """Gives the command `flags` (what was given, by field) and `values` (the file, or None)."""

    def from_flags(**values: Any) -> None:
        given = {name: values.pop(name) for name in flag_fields()}
        flags = {name: _listed(value) for name, value in given.items() if value not in (None, ())}
        command(flags=flags, **values)

    from_flags.__doc__, from_flags.__name__ = command.__doc__, command.__name__
    vars(from_flags).update(vars(command))
    decorated: _Command = from_flags
    for name in reversed(flag_fields()):
        decorated = _option(name)(decorated)
    return click.option(
        "--values",
        "-f",
        "values",
        type=click.Path(path_type=Path),
        envvar=f"{VARIABLES}VALUES",
        show_envvar=True,
        help="YAML with any key of the configuration; flags and variables win over it.",
    )(decorated)


def _option(name: str) -> Callable[[_Command], _Command]:
    kind = _kind(name)
    assert kind is not None
    type_, multiple = kind
    field = Config.model_fields[name]
    return click.option(
        flag_name(name),
        name,
        type=type_,
        multiple=multiple,
        envvar=f"{VARIABLES}{name.upper()}",
        show_envvar=True,
        help=f"{field.description}{_default(field.default)}",
    )


def _default(value: Any) -> str:
    if value in (None, "", [], PydanticUndefined):
        return ""
    shown = (
        ", ".join(value)
        if isinstance(value, list)
        else f"{value:g}s"
        if isinstance(value, float)
        else value
    )
    return f"  [default: {shown}]"


def _listed(value: Any) -> Any:
    """A repeated flag, each with commas."""
    if not isinstance(value, tuple):
        return value
    return [part.strip() for text in value for part in text.split(",") if part.strip()]


def _kind(name: str) -> tuple[Any, bool] | None:
    """What click reads it with, and whether it may be repeated."""
    annotation = Config.model_fields[name].annotation
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is typing.Literal:
        return click.Choice(list(typing.get_args(annotation))), False
    if annotation == list[str]:
        return str, True
    if annotation in (str, int, float):
        # A duration is text for click, seconds for the model.
        return (str if annotation is float else annotation), False
    return None
