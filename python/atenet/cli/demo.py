"""`ate demo`: see atenet.local.demo."""

from __future__ import annotations

import click

from atenet.local.settings import DATAPLANES

__all__ = ["demo"]


@click.command()
@click.option(
    "--dataplane",
    type=click.Choice(DATAPLANES),
    default=DATAPLANES[0],
    show_default=True,
    help="Who carries requests.",
)
@click.option("--keep", is_flag=True, help="Keep the demo's state directory to look at.")
def demo(dataplane: str, keep: bool) -> int:
    """Run the demo: real software through the whole path.

    Starts a system of its own beside whatever runs, checks each promise, cleans up. Exit code 1
    when a check failed.
    """
    from atenet.local.demo.run import run

    return run(dataplane=dataplane, keep=keep)
