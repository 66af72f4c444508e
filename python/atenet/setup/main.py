"""`ate-setup`: installs atenet on Kubernetes. Each command is imported only when it is called."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from atenet import __version__
from atenet.cli.late_group import LateGroup

__all__ = ["COMMANDS", "ate_setup", "main"]

# command -> (module, its click object, one line of help); a test keeps it equal to the command's own.
COMMANDS = {
    "install": ("atenet.setup.commands", "install", "Install, or bring to this configuration."),
    "manifests": ("atenet.setup.manifests", "manifests", "Print the same objects as YAML."),
    "status": ("atenet.setup.commands", "status", "Show what runs and what stands in its way."),
    "upgrade": (
        "atenet.setup.commands",
        "upgrade",
        "Bring what is installed to this version, and to what is given.",
    ),
    "rotate-ca": (
        "atenet.setup.rotate_ca",
        "rotate_ca",
        "Rotate a certificate authority while everything runs.",
    ),
    "uninstall": ("atenet.setup.uninstall", "uninstall", "Remove everything."),
}


@click.group(cls=LateGroup, late=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="ate-setup")
def ate_setup() -> None:
    """Install atenet on Kubernetes, look at it, upgrade it, remove it."""


def main() -> NoReturn:
    """Exit codes: 0 done, 1 failed, 2 bad input, 4 no API server."""
    from atenet.cli.failure import run

    sys.exit(run(ate_setup, "ate-setup"))
