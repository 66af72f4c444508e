"""What row sets ask of an engine: to execute a statement, and to say how it locks rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["NO_LOCKS", "Locks", "OutrunError", "Rows", "Sql"]


class Rows(Protocol):
    """The answer of one statement."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Sql(Protocol):
    """One transaction's connection."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """`?` stands for each value."""


@dataclass(frozen=True)
class Locks:
    """Clauses that keep a row as it was read until the transaction ends.

    With one writer at a time (SQLite) nothing can change under a write, and in a read nothing
    is locked: all are empty then.
    """

    update: str = ""  # nobody else may take it, or read it for a change of its own
    share: str = ""  # nobody may change or remove it
    skip: str = ""  # as `update`, but a row that another transaction holds is not waited for
    # Workers that earlier attempts at this write found held: they come last now, and are waited
    # for if they are chosen all the same.
    held: frozenset[str] = field(default_factory=frozenset)


NO_LOCKS = Locks()


class OutrunError(Exception):
    """Another transaction took what this one chose; it is to run again from its start."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"worker {worker} was taken meanwhile")
        self.worker = worker
