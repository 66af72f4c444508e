"""`ate`: the people's command. Each command lives in a module that is imported only when it is called."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from atenet import __version__
from atenet.cli.late_group import LateGroup

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


@click.group(cls=LateGroup, late=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="ate")
def ate() -> None:
    """Agent Substrate on this machine: actors that sleep until a request names them."""


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 bad input, 3 no such thing, 4 nothing to talk to."""
    from atenet.cli.failure import run

    sys.exit(run(ate))


if __name__ == "__main__":
    main()
