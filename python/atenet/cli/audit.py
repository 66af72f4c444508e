"""`ate audit`: who did what, from the local system's store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atenet.cli.failure import NoSuchThing
from atenet.cli.home import home_option
from atenet.cli.output import output_option, show
from atenet.cli.refs import REF
from atenet.errors import AteError
from atenet.identity.spiffe import parse_pod_id
from atenet.local.layout import Layout

if TYPE_CHECKING:
    from atenet.ateapi.store import AuditRow

__all__ = ["audit"]


@click.command()
@click.argument("actor", required=False, type=REF)
@click.option(
    "-n", "--lines", type=click.IntRange(min=1), default=50, show_default=True,
    help="How many of the newest entries to show.",
)  # fmt: skip
@output_option
@home_option
def audit(actor: Any, lines: int, output: str, home: Path) -> None:
    """Show who did what.

    With ACTOR, <atespace>/<actor>: what was done to it, whoever had that name.
    """
    store = Layout(home).store
    if not store.is_file():
        raise NoSuchThing(
            f"there is no store at {store}", hint="nothing was started here: `ate up`"
        )
    target = f"actor/{actor.atespace}/{actor.name}" if actor is not None else ""
    rows = asyncio.run(_newest(store, lines, target))
    found = [_entry(row) for row in rows]
    columns = ("time", "who", "method", "target", "uid")
    show(
        output,
        found,
        [column.upper() for column in columns],
        [[str(entry[column]) for column in columns] for entry in found],
    )


async def _newest(path: Path, lines: int, target: str) -> list[AuditRow]:
    from atenet.ateapi.store.opening import open_store

    store = await open_store(path)
    try:
        return await store.read(lambda tx: tx.audit.last(lines, target=target))
    finally:
        await store.close()


def _entry(row: AuditRow) -> dict[str, Any]:
    entry = row.entry
    at = datetime.fromtimestamp(entry.at, UTC)
    return {
        "number": row.number,
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "who": _short(entry.subject),
        "method": entry.method,
        "target": entry.target,
        "uid": entry.uid,
        "trace_id": entry.trace_id,
    }


def _short(subject: str) -> str:
    """`ate-system/atenet-router` for a component's id; a person's token as it is."""
    try:
        return "/".join(parse_pod_id(subject))
    except AteError:
        return subject
