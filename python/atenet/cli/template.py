"""`ate template ...`"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from pathlib import Path

import click
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, asking, paged
from atenet.cli.home import home_option
from atenet.cli.output import age, output_option, show
from atenet.cli.refs import NAME, REF
from atenet.cli.template_file import read_templates
from atenet.proto import ateapi_pb2 as pb

__all__ = ["template"]


@click.group()
def template() -> None:
    """Create and look at actor templates."""


@template.command()
@click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML file with one or more templates; - reads standard input.",
)
@home_option
@output_option
def create(file: str, home: Path, output: str) -> None:
    """Create the templates of a YAML file.

    Fields are those of ActorTemplate (docs/templates.md); an error names the line and the field.
    """
    wanted = read_templates(file)
    made = []
    with asking(home) as stub:
        for one in wanted:
            request = pb.CreateActorTemplateRequest(actor_template=one)
            made.append(stub.CreateActorTemplate(request, timeout=DEADLINE_SECONDS))
            if output == "table":
                click.echo(f"template {_name(one)} created")
    if output == "json":
        _show(output, made, many=len(made) != 1)


@template.command()
@click.argument("template", type=REF)
@home_option
@output_option
def get(template: pb.ObjectRef, home: Path, output: str) -> None:
    """Show one template."""
    request = pb.GetActorTemplateRequest(actor_template=template)
    with asking(home) as stub:
        _show(output, [stub.GetActorTemplate(request, timeout=DEADLINE_SECONDS)])


@template.command("list")
@click.argument("atespace", type=NAME, required=False, default=None)
@home_option
@output_option
def list_(atespace: str | None, home: Path, output: str) -> None:
    """List templates: all, or one atespace's."""
    request = pb.ListActorTemplatesRequest(atespace=atespace or "")
    with asking(home) as stub:
        found = list(paged(stub.ListActorTemplates, request, "actor_templates"))
    _show(output, found, many=True)


@template.command()
@click.argument("template", type=REF)
@home_option
def delete(template: pb.ObjectRef, home: Path) -> None:
    """Delete a template."""
    request = pb.DeleteActorTemplateRequest(actor_template=template)
    with asking(home) as stub:
        stub.DeleteActorTemplate(request, timeout=DEADLINE_SECONDS)
    click.echo(f"template {template.atespace}/{template.name} deleted")


def _name(found: pb.ActorTemplate) -> str:
    return f"{found.metadata.atespace}/{found.metadata.name}"


def _show(output: str, found: Iterable[pb.ActorTemplate], *, many: bool = False) -> None:
    items = list(found)
    data = [MessageToDict(item) for item in items]
    rows = [
        (
            item.metadata.atespace,
            item.metadata.name,
            item.sandbox_config.sandbox_class or "process",
            " ".join(item.containers[0].command) if item.containers else "-",
            age(item.metadata.create_time.ToDatetime(tzinfo=UTC)),
        )
        for item in items
    ]
    columns = ("ATESPACE", "NAME", "CLASS", "COMMAND", "AGE")
    show(output, data if many else data[0], columns, rows)
