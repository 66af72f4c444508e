"""The `ateapi` command."""

from __future__ import annotations

import click

from atenet import __version__, daemon
from atenet.ateapi.audit_command import audit
from atenet.ateapi.keys_command import keys
from atenet.ateapi.process import run
from atenet.ateapi.settings import Settings, StoreSettings
from atenet.ateapi.store.opening import migrate_store
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


@main.command()
@options_for(StoreSettings)
def migrate(settings: StoreSettings) -> None:
    """Brings the store's schema up to date, whole or not at all; again, it does nothing."""

    async def once(_stop: daemon.Stop) -> None:
        before, after = await migrate_store(settings.store_location)
        news = f"now at schema {after}" if after != before else f"at schema {after} already"
        click.echo(f"the store {settings.store_location} is {news}")

    daemon.run("ateapi", settings.log_level, once)


main.add_command(audit)
main.add_command(keys)
