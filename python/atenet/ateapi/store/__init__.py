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
from atenet.ateapi.store.walk import every_worker

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
    "every_worker",
]
