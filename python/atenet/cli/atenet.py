"""`atenet`: the dataplane's processes."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from atenet import __version__
from atenet.agentgateway.settings import Settings
from atenet.flags import options_for

__all__ = ["atenet", "main"]


# A process holds no other one's code in memory: name -> (module, its click object).
_ELSEWHERE = {
    "credentials": ("atenet.cli.credentials", "credentials"),
    "purge-node": ("atenet.cli.purge_node", "purge_node"),
    "router": ("atenet.cli.router", "router"),
    "sdsmint": ("atenet.cli.sdsmint", "sdsmint"),
}


class _Processes(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, name = _ELSEWHERE[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_Processes, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="atenet")
def atenet() -> None:
    """The networking layer of Agent Substrate: the dataplane's processes."""


@atenet.command()
@click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="AgentGateway's static configuration (YAML).",
)
@click.option("--validate", is_flag=True, help="Check the file, say so, and exit.")
@options_for(Settings)
def agentgateway(settings: Settings, file: Path, validate: bool) -> None:
    """The native dataplane in one process: ingress or egress from a static file, until SIGTERM.

    Logs go to stderr as JSON lines; nothing goes to stdout.
    """
    # Late: help and faulty flags should not wait for the engine to load.
    from atenet import daemon
    from atenet.agentgateway.process import plan, run

    checked = plan(file, settings)
    if validate:
        click.echo(f"{file}: valid")
        for key in checked.unused:
            click.echo(f"{file}: {key} has no effect here", err=True)
        return
    daemon.run("agentgateway", checked.log_level, lambda stop: run(checked, settings, stop))


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 bad flags."""
    from atenet.cli.failure import run

    sys.exit(run(atenet, "atenet"))
