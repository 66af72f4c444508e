"""`atenet router`: the process beside Envoy, and the small commands around it."""

from __future__ import annotations

from pathlib import Path

import click

from atenet.errors import AteError
from atenet.flags import options_for, seconds
from atenet.router.settings import Settings

__all__ = ["router"]


class _Router(click.Group):
    """`atenet router --mode=...` runs the router; a word after `router` names another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Router)
def router() -> None:
    """The Envoy dataplane: `atenet router --mode=ingress [FLAGS]` runs beside Envoy.

    `atenet router --mode=ingress --help` lists the flags.
    """


@router.command("run", hidden=True)
@click.option(
    "--mode", required=True, type=click.Choice(["ingress"]), help="Which direction is served."
)
@options_for(Settings)
def run_router(settings: Settings, mode: str) -> None:  # noqa: ARG001 - one mode so far; never guessed
    """Serves Envoy its configuration and its decisions, until SIGTERM.

    Logs go to stderr as JSON lines; nothing goes to stdout.
    """
    # Late: help and faulty flags should not wait for the engine to load.
    from atenet import daemon
    from atenet.router.ingress import run

    daemon.run("router", settings.log_level, lambda stop: run(settings, stop))


@router.command()
@click.option(
    "--mode", required=True, type=click.Choice(["ingress"]), help="Which direction is served."
)
@options_for(Settings)
def bootstrap(settings: Settings, mode: str) -> None:  # noqa: ARG001
    """Prints the bootstrap for an Envoy that is started elsewhere (same flags as the router)."""
    import json

    from atenet.router.bootstrap import bootstrap as built

    resource = built(settings, xds_port=settings.port_xds, pressure=settings.pressure_file)
    click.echo(json.dumps(resource, indent=2))


@router.command("wait-drained")
@click.option(
    "--drain-complete-file",
    "file",
    type=click.Path(path_type=Path),
    default=Path("/var/run/atenet/drain-complete"),
    show_default=True,
    help="The router's --drain-complete-file.",
)
@click.option("--timeout", type=seconds, default=60.0, show_default=True, help="Gives up then.")
def wait_drained(file: Path, timeout: float) -> None:
    """Waits until the router has drained Envoy: the preStop hook of Envoy's container."""
    from atenet.router.drain import wait_marker

    if not wait_marker(file, timeout):
        raise AteError(
            f"{file} did not appear within {timeout:g} s",
            hint="the router's log says what it waits for",
        )
