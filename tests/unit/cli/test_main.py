"""`ate` itself: quick help, and every command where it says."""

import subprocess
import sys

import click
import pytest
from atenet.cli.main import COMMANDS, ate


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_line_of_help_is_the_commands_own(name: str) -> None:
    command = ate.get_command(click.Context(ate), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=200) == COMMANDS[name][2]


def test_an_unknown_command_is_none() -> None:
    assert ate.get_command(click.Context(ate), "fly") is None


def test_help_imports_neither_grpc_nor_rich_nor_the_engine() -> None:
    code = (
        "import sys; sys.argv = ['ate', '--help']\n"
        "from atenet.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('grpc', 'rich', 'atenet._engine', 'cryptography') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
