"""`ateapi audit`: reads the audit log from the store."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime

import click

from atenet.ateapi.settings import StoreSettings
from atenet.ateapi.store import AuditRow, Store
from atenet.ateapi.store_command import with_store
from atenet.flags import options_for

__all__ = ["audit"]

_PAGE = 500


@click.command()
@click.option(
    "--target",
    default="",
    help="Only what was done to this: actor/<atespace>/<name>, actor_template/<atespace>/<name>, "
    "atespace/<name> or worker/<name>.",
)
@click.option("--after", type=int, default=0, help="Only entries after this number.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options_for(StoreSettings)
def audit(settings: StoreSettings, target: str, after: int, as_json: bool) -> None:
    """Prints who did what, the oldest first: number, time, who, what, to whom, uid, trace."""

    async def show(store: Store) -> None:
        rows = await _page(store, after, target)
        while rows:
            for row in rows:
                click.echo(_json(row) if as_json else _line(row))
            rows = await _page(store, rows[-1].number, target)

    with_store(settings, show)


async def _page(store: Store, after: int, target: str) -> list[AuditRow]:
    return await store.read(lambda tx: tx.audit.page(after, _PAGE, target=target))


def _line(row: AuditRow) -> str:
    entry = row.entry
    at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    words = [str(row.number), at, entry.subject, entry.method, entry.target]
    return "  ".join([*words, entry.uid or "-", entry.trace_id or "-"])


def _json(row: AuditRow) -> str:
    return json.dumps({"number": row.number, **dataclasses.asdict(row.entry)})
