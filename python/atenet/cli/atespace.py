"""`ate atespace ...`"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from pathlib import Path

import click
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, asking, paged
from atenet.cli.home import home_option
from atenet.cli.output import age, output_option, show
from atenet.cli.refs import NAME
from atenet.proto import ateapi_pb2 as pb

__all__ = ["atespace"]


@click.group()
def atespace() -> None:
    """Create and look at atespaces."""


@atespace.command()
@click.argument("name", type=NAME)
@home_option
@output_option
def create(name: str, home: Path, output: str) -> None:
    """Create an atespace: the room in which templates and actors have their names."""
    wanted = pb.Atespace(metadata=pb.ResourceMetadata(name=name))
    with asking(home) as stub:
        request = pb.CreateAtespaceRequest(atespace=wanted)
        made = stub.CreateAtespace(request, timeout=DEADLINE_SECONDS)
    if output == "json":
        _show(output, [made])
    else:
        click.echo(f"atespace {name} created")


@atespace.command()
@click.argument("name", type=NAME)
@home_option
@output_option
def get(name: str, home: Path, output: str) -> None:
    """Show one atespace."""
    with asking(home) as stub:
        _show(
            output, [stub.GetAtespace(pb.GetAtespaceRequest(name=name), timeout=DEADLINE_SECONDS)]
        )


@atespace.command("list")
@home_option
@output_option
def list_(home: Path, output: str) -> None:
    """List all atespaces."""
    with asking(home) as stub:
        found = list(paged(stub.ListAtespaces, pb.ListAtespacesRequest(), "atespaces"))
    _show(output, found, many=True)


@atespace.command()
@click.argument("name", type=NAME)
@home_option
def delete(name: str, home: Path) -> None:
    """Delete an atespace that has no actors."""
    with asking(home) as stub:
        stub.DeleteAtespace(pb.DeleteAtespaceRequest(name=name), timeout=DEADLINE_SECONDS)
    click.echo(f"atespace {name} deleted")


def _show(output: str, found: Iterable[pb.Atespace], *, many: bool = False) -> None:
    items = list(found)
    data = [MessageToDict(item) for item in items]
    rows = [
        (item.metadata.name, age(item.metadata.create_time.ToDatetime(tzinfo=UTC)))
        for item in items
    ]
    show(output, data if many else data[0], ("NAME", "AGE"), rows)
