"""All row sets of one transaction."""

from __future__ import annotations

from atenet.ateapi.store.news import News
from atenet.ateapi.store.rows.actors import Actors
from atenet.ateapi.store.rows.catalog import Atespaces, Garbage, Templates
from atenet.ateapi.store.rows.ledger import Audit, SigningKeys
from atenet.ateapi.store.rows.policies import Policies
from atenet.ateapi.store.rows.sql import NO_LOCKS, Locks, Sql
from atenet.ateapi.store.rows.workers import Workers

__all__ = ["Tables"]


class Tables:
    """See `store.interface.Transaction`. `news`: what is to be told once it is committed."""

    def __init__(self, sql: Sql, locks: Locks = NO_LOCKS) -> None:
        self.news: dict[News, None] = {}  # in order, each once
        self.atespaces = Atespaces(sql, locks)
        self.templates = Templates(sql, locks)
        self.actors = Actors(sql, locks, self.news)
        self.workers = Workers(sql, locks, self.news)
        self.policies = Policies(sql, locks, self.news)
        self.signing_keys = SigningKeys(sql)
        self.audit = Audit(sql)
        self.garbage = Garbage(sql)
