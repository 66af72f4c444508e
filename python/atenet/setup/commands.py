"""The commands of `ate-setup` that work on a cluster."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from atenet.cli.failure import ExitCode
from atenet.cli.output import output_option, show
from atenet.flags import seconds
from atenet.setup.cluster import Cluster, cluster_options
from atenet.setup.config import Config
from atenet.setup.flags import config_options
from atenet.setup.sources import config_from, read_values

__all__ = ["install", "status", "upgrade"]

_Command = Callable[..., None]


def _going_about(command: _Command) -> _Command:
    """The flags of both `install` and `upgrade`."""
    options = (
        click.option(
            "--database-url-file",
            type=click.Path(path_type=Path),
            help="File with the postgresql:// URL: the Secret is made from it.",
        ),
        click.option(
            "--dry-run",
            type=click.Choice(["server"]),
            help="Ask the API server whether it would accept everything, and change nothing.",
        ),
        click.option(
            "--wait/--no-wait", default=True, show_default=True, help="Until all of it runs."
        ),
        click.option(
            "--timeout",
            type=seconds,
            default=600.0,
            show_default="10m",
            help="How long to wait for that.",
        ),
        click.option(
            "--force-conflicts", is_flag=True, help="Overrule others who manage the same fields."
        ),
        click.option(
            "--yes",
            "-y",
            is_flag=True,
            help="Remove worker pools that are left out without asking.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@cluster_options
@config_options
@_going_about
def install(cluster: Cluster, flags: dict[str, Any], values: Path | None, **how: Any) -> None:
    """Install, or bring to this configuration.

    Run it again at any time: it changes what differs, and removes what is no part of it any more.
    """
    config = config_from(flags, read_values(values), file=str(values or ""))
    _bring(cluster, config, **how)


@click.command()
@cluster_options
@config_options
@_going_about
def upgrade(cluster: Cluster, flags: dict[str, Any], values: Path | None, **how: Any) -> None:
    """Bring what is installed to this version, and to what is given.

    Whatever is not given stays as it was installed: `ate-setup upgrade --atenet-dataplane=agentgateway` changes
    the dataplane alone.
    """
    from atenet.setup import inventory
    from atenet.setup.api import Api
    from atenet.setup.installing import require

    with Api.to(cluster) as api:
        found = require(inventory.read(api))
    # The tag that the older version had as its default is not a wish.
    stored = {
        key: value
        for key, value in found.values.items()
        if key != "imageTag" or value != found.version
    }
    config = config_from(flags, read_values(values), file=str(values or ""), below=stored)
    _bring(cluster, config, **how)


def _bring(
    cluster: Cluster,
    config: Config,
    *,
    database_url_file: Path | None,
    dry_run: str | None,
    wait: bool,
    timeout: float,
    force_conflicts: bool,
    yes: bool,
) -> None:
    from atenet.setup.api import Api
    from atenet.setup.installing import Options
    from atenet.setup.installing import install as installed

    began = time.monotonic()
    if dry_run:
        from atenet.setup.rehearsal import rehearse

        with Api.to(cluster) as api:
            _say_counts(rehearse(api, config, _say), "would be ", began)
        return
    options = Options(
        wait=wait,
        timeout=timeout,
        force=force_conflicts,
        database_url_file=database_url_file,
        may_remove_pools=None if yes else _may_remove,
    )
    with Api.to(cluster) as api:
        _say_counts(installed(cluster, api, config, options, _say), "", began)


def _may_remove(pools: list[str]) -> bool:
    """Where nobody can be asked, they stay."""
    if not sys.stdin.isatty():
        return False
    listed = ", ".join(pools)
    return click.confirm(
        f"{listed}: no part of this configuration. Put their actors to sleep and remove them?",
        err=True,
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


def _say_counts(counted: Counter[str], how: str, began: float) -> None:
    parts = [
        f"{counted[what]} {how}{what}"
        for what in ("created", "changed", "unchanged", "accepted", "removed")
        if counted[what]
    ]
    click.echo(f"{', '.join(parts)} in {time.monotonic() - began:.1f} s")


@click.command()
@cluster_options
@output_option
def status(cluster: Cluster, output: str) -> int:
    """Show what runs and what stands in its way. Exit code 1: not all of it runs.

    It also warns of authorities that have been signing for long, or will not for much longer.
    """
    from atenet.setup.api import Api
    from atenet.setup.showing import standing

    with Api.to(cluster) as api:
        found = standing(api)
    rows = [(part.what, part.ready, part.image or "-") for part in found.parts]
    if output != "json":
        click.echo(f"atenet {found.version}, dataplane {found.dataplane}")
    show(output, found.as_data(), ("WHAT", "READY", "IMAGE"), rows)
    for problem in found.problems:
        click.echo(f"problem: {problem}", err=True)
        if problem.hint:
            click.echo(f"hint: {problem.hint}", err=True)
    for each in found.authorities:
        click.echo(f"{'problem' if each.over else 'warning'}: {each}", err=True)
        click.echo(f"hint: {each.hint}", err=True)
    return ExitCode.DONE if found.healthy else ExitCode.FAILED
