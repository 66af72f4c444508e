"""`ate demo`: see atenet.local.demo."""

from __future__ import annotations

import click

__all__ = ["demo"]


@click.command()
@click.option("--keep", is_flag=True, help="Keep the demo's state directory to look at.")
def demo(keep: bool) -> int:
    """Run the demo: real software through the whole path.

    Starts a system of its own beside whatever runs, checks each promise, cleans up. Exit code 1
    when a check failed.
    """
    from atenet.local.demo.run import run

    return run(keep=keep)
