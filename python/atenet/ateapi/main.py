"""The `ateapi` command."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from atenet import __version__, logs
from atenet.ateapi.process import run
from atenet.ateapi.settings import Settings, options
from atenet.errors import AteError

__all__ = ["main"]


@click.group()
@click.version_option(__version__)
def main() -> None:
    """The control plane: actors, their workers, and who may say so."""


@main.command()
@options
def serve(**given: Any) -> None:
    """Serves until SIGTERM. Logs go to stderr as JSON lines; nothing goes to stdout."""
    settings = Settings(**given)
    logs.configure("ateapi", settings.log_level)
    try:
        asyncio.run(run(settings))
    except AteError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(1)
