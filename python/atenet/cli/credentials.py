"""`atenet credentials`: the credential provider's process."""

from __future__ import annotations

import click

from atenet.credentials.settings import CredentialsSettings
from atenet.flags import options_for

__all__ = ["credentials"]


@click.command()
@options_for(CredentialsSettings)
def credentials(settings: CredentialsSettings) -> None:
    """A credential provider: gives the egress gateway secrets from files and variables.

    An actor's rules reach only what stands under its own atespace. Logs go to stderr as JSON lines.
    """
    from atenet import daemon
    from atenet.credentials.process import serve

    daemon.run("credentials", settings.log_level, lambda stop: serve(settings, stop))
