"""`atenet`: the dataplane's processes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atenet import __version__
from atenet.agentgateway.limits import Limits
from atenet.errors import AteError
from atenet.flags import options_for

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="atenet")
def cli() -> None:
    """The networking layer of Agent Substrate: the dataplane's processes."""


@cli.command()
@click.option(
    "-f", "--file", "file", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="AgentGateway's static configuration (YAML).",
)  # fmt: skip
@click.option("--validate", is_flag=True, help="Check the file, say so, and exit.")
@click.option(
    "--bind-address", metavar="IP", help="Listen here where the file names only a port.  [default: every address]"
)
@click.option(
    "--ready-file", type=click.Path(path_type=Path), metavar="PATH",
    help="Written when it serves: JSON of the bound addresses.",
)  # fmt: skip
@click.option("--access-log/--no-access-log", default=True, show_default=True, help="One JSON line a request on stderr.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Least severe level.  [default: info]"
)
@options_for(Limits)
def agentgateway(
    limits: Limits,
    file: Path,
    validate: bool,
    bind_address: str | None,
    ready_file: Path | None,
    access_log: bool,
    log_level: str | None,
) -> None:
    """Serve ingress from a static file: the native dataplane, in one process."""
    # Late: a faulty flag should not wait for the engine to load.
    from atenet.agentgateway.load import load
    from atenet.agentgateway.process import engine_config, serve

    config, unused = engine_config(file, bind_address=bind_address, access_log=access_log, limits=limits)
    if validate:
        click.echo(f"{file}: valid")
        for key in unused:
            click.echo(f"{file}: {key} has no effect here", err=True)
        return
    _log_to_stderr(log_level or load(file).config.logging.level or "info", unused)
    serve(config, ready_file=ready_file)


def _log_to_stderr(level: str, unused: object) -> None:
    import logging

    from atenet import _engine, logs

    logs.configure("agentgateway", level)
    _engine.log_to_stderr("agentgateway", level)
    if unused:
        logging.getLogger(__name__).warning("keys of the file without effect", extra={"keys": unused})


def main() -> None:
    """The console script. Errors are two lines on stderr and exit 1."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except AteError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
