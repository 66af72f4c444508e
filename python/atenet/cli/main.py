"""`ate`: the people's command. Each command lives in a module that is imported only when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import click

from atenet import __version__

__all__ = ["ate", "main"]

# command -> (module, its click object, one line of help): the line is here so that `ate --help`
# imports nothing; a test keeps it equal to the command's own.
COMMANDS = {
    "up": ("atenet.cli.up", "up", "Start the whole system on this machine."),
    "down": ("atenet.cli.down", "down", "Stop the system and clean up after it."),
    "doctor": ("atenet.cli.doctor", "doctor", "Say what this machine can do, and what is missing."),
    "status": ("atenet.cli.status", "status", "Show processes, workers and actors."),
    "atespace": ("atenet.cli.atespace", "atespace", "Create and look at atespaces."),
    "template": ("atenet.cli.template", "template", "Create and look at actor templates."),
    "actor": ("atenet.cli.actor", "actor", "Create, look at, suspend, pause and resume actors."),
    "image": (
        "atenet.cli.image",
        "image",
        "Import and list root file systems for the gvisor class.",
    ),
    "snapshot": ("atenet.cli.snapshot", "snapshot", "List, verify and collect snapshots."),
    "policy": ("atenet.cli.policy", "policy", "Say what an actor may reach, and ask what it may."),
    "curl": ("atenet.cli.curl", "curl", "Send a request to an actor through the router."),
    "logs": ("atenet.cli.logs", "logs", "Show a process's or an actor's log."),
    "audit": ("atenet.cli.audit", "audit", "Show who did what."),
    "demo": ("atenet.cli.demo", "demo", "Run the demo: real software through the whole path."),
}


class _LateGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="ate")
def ate() -> None:
    """Agent Substrate on this machine: actors that sleep until a request names them."""


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 bad input, 3 no such thing, 4 nothing to talk to."""
    from atenet.cli.failure import run

    sys.exit(run(ate))


if __name__ == "__main__":
    main()
