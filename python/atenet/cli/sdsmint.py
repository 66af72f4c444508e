"""`atenet sdsmint`: the minter of interception leaves."""

from __future__ import annotations

import click

from atenet.flags import options_for
from atenet.sdsmint.settings import SdsmintSettings

__all__ = ["sdsmint"]


@click.command()
@options_for(SdsmintSettings)
def sdsmint(settings: SdsmintSettings) -> None:
    """Mints interception leaves for the Envoy egress gateway; nothing else reads the authorities' keys.

    Logs go to stderr as JSON lines.
    """
    from atenet import daemon
    from atenet.sdsmint.process import serve

    daemon.run("sdsmint", settings.log_level, lambda stop: serve(settings, stop))
