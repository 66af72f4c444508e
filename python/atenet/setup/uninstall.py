"""`ate-setup uninstall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atenet.errors import AteError
from atenet.flags import seconds
from atenet.setup.cluster import Cluster, cluster_options

if TYPE_CHECKING:
    from atenet.setup.removing import Remains

__all__ = ["uninstall"]


@click.command()
@cluster_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=seconds,
    default=120.0,
    show_default="2m",
    help="How long worker pools may take to put their actors to sleep.",
)
@click.option(
    "--purge-nodes",
    is_flag=True,
    help="Empty /var/lib/ate and /run/ate/node on every node as well, for good.",
)
@click.option(
    "--purge-timeout",
    type=seconds,
    default=300.0,
    show_default="5m",
    help="How long that may take.",
)
def uninstall(
    cluster: Cluster, yes: bool, timeout: float, purge_nodes: bool, purge_timeout: float
) -> None:
    """Remove everything.

    Workers' actors are put to sleep first. Sleeping actors stay where they are kept, the database and the bucket;
    with the authorities' keys gone, credentials that were issued are of no use afterwards. Directories on
    nodes stay, unless --purge-nodes says otherwise.
    """
    from atenet.setup.api import Api
    from atenet.setup.purging import BY_HAND
    from atenet.setup.removing import remains, remove

    with Api.to(cluster) as api:
        if not remains(api).anything:
            click.echo("nothing of atenet is there")
            if purge_nodes:
                raise AteError("--purge-nodes: nodes were not looked at", hint=BY_HAND)
            return
        if not yes:
            _ask(remains(api), cluster.server, purge_nodes)
        done = remove(
            api, _say, timeout=timeout, purge_seconds=purge_timeout if purge_nodes else None
        )
        click.echo(f"{done.count} removed")
    if done.unpurged:
        names = ", ".join(done.unpurged)
        raise AteError(f"all is removed but what is on these nodes: {names}", hint=BY_HAND)
    if not purge_nodes:
        _say(
            "nodes keep /var/lib/ate (actors' files, images, what pauses left) and, until they start "
            f"again, /run/ate; to remove them, {BY_HAND}"
        )


def _ask(found: Remains, server: str, purge_nodes: bool) -> None:
    """Raises AteError: nothing is to be removed."""
    on_nodes = ["on every node: all in /var/lib/ate and /run/ate/node"] if purge_nodes else []
    for each in (*found.pools, *found.keys, *on_nodes):
        click.echo(f"will be removed: {each}", err=True)
    if not click.confirm(f"Remove atenet from {server}?", err=True):
        raise AteError("nothing was removed", hint="--yes does not ask")


def _say(text: str) -> None:
    click.echo(text, err=True)
