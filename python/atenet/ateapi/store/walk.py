"""All rows of a kind, a page at a time: no query holds a store up for long, and no list is as long as the fleet."""

from __future__ import annotations

from collections.abc import Iterator

from atenet.ateapi.store.interface import Transaction, WorkerRow

__all__ = ["every_worker"]

_PAGE = 500


def every_worker(tx: Transaction, page: int = _PAGE) -> Iterator[WorkerRow]:
    """By name; lost ones and draining ones, too."""
    after = ""
    while rows := tx.workers.page(after, page):
        yield from rows
        after = rows[-1].worker.metadata.name
