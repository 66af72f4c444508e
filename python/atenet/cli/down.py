"""`ate down`: stops the system and leaves nothing of it on the machine but its state directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from atenet.cli.home import home_option
from atenet.cli.output import working
from atenet.local.system import LocalSystem

__all__ = ["down"]


@click.command()
@home_option
def down(home: Path) -> None:
    """Stop the system and clean up after it.

    Works whatever state it is in: after a crash of the supervisor it finds and removes what is
    left (processes, network namespaces). Actors and their files stay; `ate up` brings them back.
    """
    system = LocalSystem(home)
    with working("stopping") as say:
        last: dict[str, Any] = {}
        for event in system.stop():
            if event.get("left"):
                say(f"stopping {', '.join(event['left'])}")
            last = event
    click.echo(_conclusion(last, system))


def _conclusion(last: dict[str, Any], system: LocalSystem) -> str:
    if last["event"] == "stopped":
        return "down"
    if last["event"] == "idle":
        return f"nothing is running on {system.layout.home}"
    found = last["found"]
    counts = [f"{len(found[kind])} {kind}" for kind in ("processes", "namespaces") if found[kind]]
    return f"the supervisor was gone; cleaned up {' and '.join(counts) or 'its files'}"
