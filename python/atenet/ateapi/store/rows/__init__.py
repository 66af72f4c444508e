"""Row sets: the queries, written once in the SQL that SQLite and PostgreSQL share.

Values stand as `?`. What differs between the engines is in `sql`: which rows a write locks.
"""

from atenet.ateapi.store.rows.sql import NO_LOCKS, Locks, OutrunError, Sql
from atenet.ateapi.store.rows.tables import Tables

__all__ = ["NO_LOCKS", "Locks", "OutrunError", "Sql", "Tables"]
