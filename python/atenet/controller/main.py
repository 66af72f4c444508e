"""The `ate-controller` command."""

from __future__ import annotations

import click
from lightkube import AsyncClient, KubeConfig

from atenet import __version__, daemon
from atenet.controller.process import serve
from atenet.controller.settings import ControllerSettings, NodeIdentitySettings
from atenet.controller.signing.names import BUNDLE_KEY
from atenet.controller.signing.node_identity import keep_node_identity
from atenet.flags import options_for

__all__ = ["main"]


@click.group(context_settings={"max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Keeps a Kubernetes cluster's worker pools, certificates and trust as they are wanted."""


@main.command("run")
@options_for(ControllerSettings)
def run(settings: ControllerSettings) -> None:
    """Looks after the cluster until SIGTERM. Logs go to stderr as JSON lines."""
    daemon.run("ate-controller", settings.log_level, lambda stop: serve(settings, stop))


@main.command("node-identity")
@options_for(NodeIdentitySettings)
def node_identity(settings: NodeIdentitySettings) -> None:
    """Keeps a node agent's certificate, beside it in its pod, where the cluster gives pods none."""

    async def keep(stop: daemon.Stop) -> None:
        client = AsyncClient(KubeConfig.from_service_account(), trust_env=False)
        try:
            await keep_node_identity(client, settings.directory / BUNDLE_KEY, stop)
        finally:
            await client.close()

    daemon.run("ate-controller", settings.log_level, keep)
