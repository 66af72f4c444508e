"""`--home`, and what a command needs of the system that lives there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from atenet.cli.failure import NotReachable
from atenet.local.layout import Layout, default_home
from atenet.local.system import LocalSystem

__all__ = ["address_of", "home_option", "running"]

F = TypeVar("F", bound=Callable[..., Any])


def home_option(command: F) -> F:
    """`--home DIR`, as the parameter `home`."""
    option = click.option(
        "--home",
        type=click.Path(path_type=Path),
        default=default_home,
        envvar="ATE_HOME",
        show_default="$ATE_HOME, else ~/.local/state/ate",
        help="State directory of the system.",
    )
    return option(command)


def running(home: Path) -> tuple[Layout, dict[str, Any]]:
    """The layout, and what the supervisor wrote down. Raises NotReachable when there is none."""
    system = LocalSystem(home)
    try:
        record = system.record()
    except PermissionError:
        record = None
    if record is None:
        raise NotReachable(
            f"no system is running on {system.layout.home}",
            hint="start one with `ate up`, or name another with --home or ATE_HOME",
        )
    return system.layout, record


def address_of(record: dict[str, Any], process: str, what: str) -> str:
    """Where this process serves this: `("router", "https")` -> `127.0.0.1:8443`."""
    for entry in record["processes"]:
        if entry["name"] == process and what in entry["addresses"]:
            return str(entry["addresses"][what])
    raise NotReachable(
        f"{process} serves no {what} in this system", hint="`ate status` shows what runs"
    )
