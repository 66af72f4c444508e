"""Where the control plane remembers: one interface, SQLite as the embedded store."""

from atenet.ateapi.store.interface import BusyError, HeldError, Store, Transaction, WorkerRow

__all__ = ["BusyError", "HeldError", "Store", "Transaction", "WorkerRow"]
