"""Where the control plane remembers: one interface, SQLite embedded, PostgreSQL for several."""

from atenet.ateapi.store.interface import (
    BusyError,
    ContradictionError,
    HeldError,
    Store,
    Transaction,
    WorkerRow,
)

__all__ = ["BusyError", "ContradictionError", "HeldError", "Store", "Transaction", "WorkerRow"]
