"""`atenet purge-node`: what `ate-setup uninstall --purge-nodes` runs on each node."""

from __future__ import annotations

import click

from atenet.atelet.purge import PurgeSettings
from atenet.flags import options_for

__all__ = ["purge_node"]


@click.command("purge-node")
@options_for(PurgeSettings)
def purge_node(settings: PurgeSettings) -> None:
    """Empties a node's directories for good, then waits for SIGTERM.

    What `ate-setup uninstall --purge-nodes` runs on each node, when nothing else of atenet runs there.
    """
    from atenet import daemon
    from atenet.atelet.purge import serve

    daemon.run("purge-node", settings.log_level, lambda stop: serve(settings, stop))
