"""`atenet`: one command, and each process loads its own code only."""

import subprocess
import sys

import click
import pytest
from atenet.cli.atenet import atenet

# What the native router's process has loaded once it serves.
_NATIVE = (
    "import sys, atenet.cli.atenet, atenet.daemon, atenet.agentgateway.process; print(*sys.modules)"
)

_OTHERS = (["atenet", "router"], ["atenet", "credentials"], ["cryptography"], ["grpc"])


def test_the_native_router_holds_none_of_the_other_processes_code() -> None:
    done = subprocess.run([sys.executable, "-c", _NATIVE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "atenet.agentgateway.process" in loaded
    assert [m for m in loaded if m.split(".")[:2] in _OTHERS] == []


@pytest.mark.parametrize("name", ["agentgateway", "credentials", "router"])
def test_every_process_is_listed_and_found(name: str) -> None:
    context = click.Context(atenet, info_name="atenet")
    assert name in atenet.list_commands(context)
    command = atenet.get_command(context, name)
    assert command is not None
    assert command.name == name
