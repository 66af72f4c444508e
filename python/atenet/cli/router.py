"""`atenet router`: the process beside Envoy, and the small commands around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from atenet.errors import AteError
from atenet.flags import options_for, seconds
from atenet.router.egress_settings import EgressSettings
from atenet.router.envoy_settings import EnvoySettings
from atenet.router.settings import Settings

__all__ = ["router"]


class _Router(click.Group):
    """`atenet router --mode=...` runs the router; a word after `router` names another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


class _ByMode(click.Command):
    """One of two commands, each with its own flags: which, `--mode` says. It is never guessed."""

    def __init__(self, name: str, modes: dict[str, click.Command], **more: Any) -> None:
        help_text = modes["ingress"].help
        super().__init__(name, help=help_text, **more)
        self.modes = modes

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        mode, rest = _mode(args)
        if mode not in self.modes:
            problem = (
                f"is missing; one of {', '.join(self.modes)}"
                if mode is None
                else f"is none of {', '.join(self.modes)}: {mode}"
            )
            raise click.UsageError(f"--mode {problem}")
        return self.modes[mode].make_context(f"{info_name} --mode={mode}", rest, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return ctx.command.invoke(ctx)


def _mode(args: list[str]) -> tuple[str | None, list[str]]:
    """The mode, and the other words."""
    found, rest, words = None, [], iter(args)
    for word in words:
        if word == "--mode":
            found = next(words, None)
        elif word.startswith("--mode="):
            found = word.removeprefix("--mode=")
        else:
            rest.append(word)
    return found, rest


@click.group(cls=_Router)
def router() -> None:
    """The Envoy dataplane: `atenet router --mode=ingress|egress [FLAGS]` runs beside Envoy.

    `atenet router --mode=ingress --help` and `--mode=egress --help` list the flags.
    """


@click.command()
@options_for(Settings)
def run_ingress(settings: Settings) -> None:
    """Serves Envoy its configuration and its decisions as an ingress router, until SIGTERM.

    Logs go to stderr as JSON lines; nothing goes to stdout.
    """
    # Late: help and faulty flags should not wait for the engine to load.
    from atenet import daemon
    from atenet.router.ingress import run

    daemon.run("router", settings.log_level, lambda stop: run(settings, stop))


@click.command()
@options_for(EgressSettings)
def run_egress(settings: EgressSettings) -> None:
    """Serves Envoy its configuration and its decisions as an egress gateway, until SIGTERM.

    Logs go to stderr as JSON lines; nothing goes to stdout.
    """
    from atenet import daemon
    from atenet.router.egress import run

    daemon.run("router", settings.log_level, lambda stop: run(settings, stop))


_output = click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="A file to write it to, for a container without a shell. Default: standard output.",
)


@click.command()
@_output
@options_for(Settings)
def bootstrap_ingress(settings: Settings, output: Path | None) -> None:
    """Prints the bootstrap for an Envoy that is started elsewhere (same flags as the router)."""
    _print_bootstrap(settings, output)


@click.command()
@_output
@options_for(EgressSettings)
def bootstrap_egress(settings: EgressSettings, output: Path | None) -> None:
    """Prints the bootstrap for an Envoy that is started elsewhere (same flags as the router)."""
    _print_bootstrap(settings, output)


def _print_bootstrap(settings: EnvoySettings, output: Path | None) -> None:
    import json

    from atenet.router.bootstrap import bootstrap as built

    resource = built(settings, xds_port=settings.port_xds, pressure=settings.pressure_file)
    text = json.dumps(resource, indent=2) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise AteError(f"--output: cannot write {output}: {error.strerror}") from error


router.add_command(_ByMode("run", {"ingress": run_ingress, "egress": run_egress}, hidden=True))
router.add_command(_ByMode("bootstrap", {"ingress": bootstrap_ingress, "egress": bootstrap_egress}))


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
