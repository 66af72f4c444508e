"""`ate logs`: a process's log, or what an actor printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from atenet.cli.failure import NoSuchThing
from atenet.cli.home import home_option
from atenet.local.layout import Layout

__all__ = ["logs"]

_POLL_SECONDS = 0.2
_BLOCK = 64 * 1024


@click.command()
@click.argument("what", required=False, default="supervisor")
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True,
    help="How many of the last lines to show.",
)  # fmt: skip
@home_option
def logs(what: str, follow: bool, lines: int, home: Path) -> None:
    """Show a process's or an actor's log.

    WHAT is a process (supervisor, ateapi, atelet, router, worker-1 ...) or <atespace>/<actor>.
    """
    layout = Layout(home)
    files = _actor_logs(home, layout, what) if "/" in what else [_process_log(layout, what)]
    for file in files:
        if len(files) > 1:
            click.echo(f"==> {file.name} <==")
        for line in tail(file, lines):
            sys.stdout.buffer.write(line)
    sys.stdout.flush()
    if follow:
        _follow(files)


def _process_log(layout: Layout, name: str) -> Path:
    file = layout.log(name)
    if os.sep not in name and file.is_file():
        return file
    there = sorted(found.stem for found in layout.logs.glob("*.log"))
    raise NoSuchThing(
        f"no log of a process {name!r} in {layout.home}",
        hint=f"there are {', '.join(there)}" if there else "nothing was started here: `ate up`",
    )


def _actor_logs(home: Path, layout: Layout, what: str) -> list[Path]:
    from atenet.cli.control import DEADLINE_SECONDS, asking
    from atenet.cli.refs import REF
    from atenet.proto import ateapi_pb2 as pb

    ref = REF.convert(what, None, None)
    with asking(home) as stub:
        actor = stub.GetActor(pb.GetActorRequest(actor=ref), timeout=DEADLINE_SECONDS)
    found = sorted((layout.node / "actors" / actor.metadata.uid / "logs").glob("*"))
    if not found:
        raise NoSuchThing(f"actor {what} has no log yet", hint="it writes one when it first runs")
    return found


def tail(file: Path, lines: int) -> list[bytes]:
    """The last lines of a file, without reading more of it than needed."""
    if lines == 0:
        return []
    with file.open("rb") as source:
        position = source.seek(0, os.SEEK_END)
        held = b""
        while position > 0 and held.count(b"\n") <= lines:
            step = min(_BLOCK, position)
            position -= step
            source.seek(position)
            held = source.read(step) + held
    return held.splitlines(keepends=True)[-lines:]


def _follow(files: list[Path]) -> None:
    """Prints what is appended, until interrupted; a file that is replaced is read from its start."""
    places = {file: file.stat().st_size for file in files}
    while True:
        for file in files:
            for block in _news(file, places):
                sys.stdout.buffer.write(block)
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)  # noqa: TID251 - a file raises no event to wait for


def _news(file: Path, places: dict[Path, int]) -> Iterator[bytes]:
    try:
        with file.open("rb") as source:
            if source.seek(0, os.SEEK_END) < places[file]:
                places[file] = 0
            source.seek(places[file])
            while block := source.read(_BLOCK):
                places[file] += len(block)
                yield block
    except FileNotFoundError:
        places[file] = 0
