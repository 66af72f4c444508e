"""`ate image ...`: root file systems that containers of the gvisor class can have."""

from __future__ import annotations

import os
from pathlib import Path

import click

from atenet.cli.home import home_option
from atenet.cli.output import output_option, show, working
from atenet.errors import AteError
from atenet.images import ImageStore
from atenet.local.layout import Layout

__all__ = ["image"]


@click.group()
def image() -> None:
    """Import and list root file systems for the gvisor class."""


@image.command("import")
@click.argument("name")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Also when there is an image NAME already.")
@home_option
def import_(home: Path, name: str, source: Path, replace: bool) -> None:
    """Import SOURCE as the image NAME of this node.

    SOURCE is a docker archive (`docker save`), an OCI archive or layout, or a directory that is a
    root file system. Its files become the actor's; set-user-id bits and devices are left out.
    With --replace, new actors are given the new files. What runs or sleeps with its memory keeps
    those that it began on; they are removed when nothing needs them any more.
    """
    from atenet.images.source import fill_from

    if os.geteuid() != 0:
        raise AteError("importing an image needs root", hint="run it with sudo")
    with working(f"importing {source}"):
        made = _store(home).add(
            name, str(source), lambda rootfs: fill_from(source, rootfs), replace=replace
        )
    command = " ".join(made.command) or "none: templates must name one"
    click.echo(f"image {name} imported (command: {command})")


@image.command("list")
@home_option
@output_option
def list_(home: Path, output: str) -> None:
    """List the images of this node."""
    found = _store(home).list()
    data = [
        {
            "name": each.name,
            "version": each.version,
            "source": each.source,
            "command": list(each.command),
        }
        for each in found
    ]
    rows = [(each.name, each.version[:12], " ".join(each.command), each.source) for each in found]
    show(output, data, ("NAME", "VERSION", "COMMAND", "SOURCE"), rows)


@image.command()
@click.argument("name")
@home_option
def remove(home: Path, name: str) -> None:
    """Remove the name of an image. Its files are removed when nothing needs them any more."""
    if not _store(home).remove(name):
        raise AteError(f"there is no image {name}", hint="`ate image list` shows them")
    click.echo(f"image {name} removed")


def _store(home: Path) -> ImageStore:
    return ImageStore(Layout(home).images)
