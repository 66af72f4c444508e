"""Where the control plane remembers: one interface, SQLite embedded, PostgreSQL for several."""

from atenet.ateapi.store.interface import (
    AuditEntry,
    AuditRow,
    BusyError,
    ContradictionError,
    HeldError,
    SigningKey,
    Store,
    Transaction,
    WorkerRow,
    WorkerTotals,
)

__all__ = [
    "AuditEntry",
    "AuditRow",
    "BusyError",
    "ContradictionError",
    "HeldError",
    "SigningKey",
    "Store",
    "Transaction",
    "WorkerRow",
    "WorkerTotals",
]
