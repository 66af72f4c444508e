"""The `ateapi` command."""

from __future__ import annotations

import click

from atenet import __version__, daemon
from atenet.ateapi.process import run
from atenet.ateapi.settings import Settings
from atenet.flags import options_for

__all__ = ["main"]


@click.group()
@click.version_option(__version__)
def main() -> None:
    """The control plane: actors, their workers, and who may say so."""


@main.command()
@options_for(Settings)
def serve(settings: Settings) -> None:
    """Serves until SIGTERM. Logs go to stderr as JSON lines; nothing goes to stdout."""
    daemon.run("ateapi", settings.log_level, lambda stop: run(settings, stop))
