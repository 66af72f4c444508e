"""A group of commands that are imported when they are called: help and refusals stay quick."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LateGroup"]


class LateGroup(click.Group):
    """`late`: command -> (module, its click object, one line of help), in the order of the help."""

    def __init__(self, *args: Any, late: Mapping[str, tuple[str, str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._late = late

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._late:
            return None
        module, attribute, _ = self._late[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in self._late.items()])
