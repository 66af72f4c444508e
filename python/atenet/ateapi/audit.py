"""Who did what: an entry for each call that changed something, in the same transaction.

A call that only reads, changes nothing or fails before its first change leaves none. A workflow's
entry stands with its first stored step; the steps that follow are its own affair.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from atenet.ateapi.store import AuditEntry, BusyError, ContradictionError, Store
from atenet.identity.spiffe import API_ID
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "AUDITED",
    "MINTS",
    "Keeper",
    "Pending",
    "begin",
    "on_own_account",
    "pending",
    "target_of",
]

_log = logging.getLogger(__name__)
_READS = ("Get", "List", "Watch")
MINTS = frozenset(
    {
        "Control/MintActorJWT",
        "Control/MintActorCertificate",
        "WorkerService/MintWorkerActorCertificate",
    }
)
# A registration is also a heartbeat: its handler makes the entry itself, when it is news.
_BY_HAND = frozenset({"WorkerService/RegisterWorker"})
AUDITED = (
    frozenset(
        f"{service.name}/{method.name}"
        for service in pb.DESCRIPTOR.services_by_name.values()
        for method in service.methods
        if not method.name.startswith(_READS)
    )
    - _BY_HAND
)

_ROUND_SECONDS = 3600.0
_BATCH = 1000
_LONGEST = 256


@dataclass
class Pending:
    """The entry that the call being answered leaves with its first change, and one for each other
    actor that it changes on the way (the one that it suspends to make room)."""

    subject: str
    method: str
    target: str
    trace_id: str
    uid: str = ""  # of what a credential is minted for, once it is known
    written: bool = False
    others: set[str] = field(default_factory=set)

    def entry(self, result: Any, step: str, at: float) -> AuditEntry | None:
        """What is to be stored with this change, `step`; None when it has been, or is no news."""
        if self.written or not isinstance(result, Message):
            return None
        if not self.target:
            return self._about(result, f"ateapi/{step}", at)
        if not isinstance(result, pb.Actor) or target_of(result) == self.target:
            return self.entry_for(uid_of(result), at)
        if target_of(result) in self.others:
            return None
        return self._about(result, f"{self.method}: {step}", at)

    def stored(self, entry: AuditEntry) -> None:
        """It is in the log now."""
        if self.target in ("", entry.target):
            self.written = True
        else:
            self.others.add(entry.target)

    def entry_for(self, uid: str, at: float) -> AuditEntry:
        return AuditEntry(at, self.subject, self.method, self.target, uid, self.trace_id)

    def _about(self, result: Any, method: str, at: float) -> AuditEntry:
        target = target_of(result)
        return AuditEntry(at, self.subject, method, target, uid_of(result), self.trace_id)


_pending: ContextVar[Pending | None] = ContextVar("audit", default=None)


def begin(entry: Pending) -> None:
    """From now on in this call, and in the operations that it starts."""
    _pending.set(entry)


def pending() -> Pending | None:
    return _pending.get()


def minting_for(uid: str) -> None:
    """The incarnation that the call being answered mints for."""
    entry = _pending.get()
    if entry is not None:
        entry.uid = uid


def on_own_account() -> None:
    """An operation that no call asked for (a recovery, an idle suspend) is the control plane's own,
    named after its first step."""
    if _pending.get() is None:
        _pending.set(Pending(API_ID, "", "", ""))


def uid_of(result: Any) -> str:
    """Of the record that changed; empty where it has none."""
    return result.metadata.uid if hasattr(result, "metadata") else ""


def target_of(request: Any) -> str:
    """What a request is about: `actor/<atespace>/<name>`. Pure; takes whatever was sent."""
    if isinstance(request, pb.Actor):
        return _named("actor", request.metadata)
    for kind in ("actor", "actor_template", "worker", "atespace"):
        value = getattr(request, kind, None)
        if isinstance(value, Message):
            return _named(kind, getattr(value, "metadata", value))
    return _cut(f"atespace/{getattr(request, 'name', '')}")


def _named(kind: str, ref: Any) -> str:
    parts = [kind, getattr(ref, "atespace", ""), ref.name]
    return _cut("/".join(part for part in parts if part))


def _cut(text: str) -> str:
    return text[:_LONGEST].replace("\0", "")


class Keeper:
    """Forgets entries that are older than they have to be kept."""

    def __init__(self, store: Store, keep: float, clock: Callable[[], float]) -> None:
        """`keep`: seconds, a day at least."""
        self._store = store
        self._keep = keep
        self._clock = clock

    async def run(self) -> None:
        while True:
            try:
                await self.round()
            except (BusyError, ContradictionError) as e:
                _log.warning("the audit log is as long as before", extra={"error": str(e)})
            await asyncio.sleep(_ROUND_SECONDS)

    async def round(self) -> None:
        before = self._clock() - self._keep
        while await self._store.write(lambda tx: tx.audit.forget(before, _BATCH)) == _BATCH:
            continue
