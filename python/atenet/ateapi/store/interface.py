"""What a store must do. SQLite and PostgreSQL do it, with the same row sets and the same tests.

A write is one function that runs as a whole inside one transaction and may run again if the
database asks for it, so it must have no effect but on its `Transaction`. A read sees one
consistent state and takes no lock. Messages handed out are the caller's own copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from atenet.ateapi.store.news import Subscriber
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "CPU",
    "MEMORY",
    "ActorRows",
    "AtespaceRows",
    "AuditEntry",
    "AuditRow",
    "AuditRows",
    "BusyError",
    "ClaimRow",
    "ContradictionError",
    "GarbageRows",
    "HeldError",
    "PolicyRows",
    "SigningKey",
    "SigningKeyRows",
    "Store",
    "TemplateRows",
    "Transaction",
    "WorkerRow",
    "WorkerRows",
    "WorkerTotals",
]

T = TypeVar("T")

# The keys of WorkerResources.resources.
CPU, MEMORY = "cpu_milli", "memory_bytes"


class BusyError(Exception):
    """The store cannot take the call now (locked, full, unreachable); a retry may succeed."""


class HeldError(Exception):
    """Another operation holds the actor, or has taken it over from this one."""


class ContradictionError(Exception):
    """A change would break the books (a second claim of one actor); nothing of it is stored."""


@dataclass(frozen=True)
class WorkerRow:
    """A worker as stored: what it registered, and what only the control plane knows."""

    worker: pb.Worker
    allocated: int  # claimed slots
    heartbeat_at: float  # seconds since the epoch
    lost: bool  # its actors are being recovered; no new ones are placed
    # What its claims ask for: thousandths of a core, bytes.
    allocated_cpu: int = 0
    allocated_memory: int = 0


@dataclass(frozen=True)
class ClaimRow:
    """One slot of one incarnation of a worker, held by one actor."""

    actor_uid: str
    worker: str
    worker_epoch: int
    cpu_milli: int = 0
    memory_bytes: int = 0
    # Since when nobody has used the actor (seconds since the epoch), as last heard; None: it is
    # in use, or nothing was heard yet.
    idle_since: float | None = None


@dataclass(frozen=True)
class WorkerTotals:
    """Of all workers: how many are what, and their slots."""

    active: int
    draining: int  # and not lost
    lost: int
    slots: int  # of active ones
    claimed: int  # of all


@dataclass(frozen=True)
class SigningKey:
    """A key that signs actors' tokens, as PKCS #8 PEM. Times are seconds since the epoch."""

    kid: str
    created_at: float
    signs_from: float  # published before that, so that verifiers know it in time
    private_key: bytes

    def __repr__(self) -> str:
        return f"SigningKey({self.kid})"  # never the key itself


@dataclass(frozen=True)
class AuditEntry:
    """Who did what to whom. Never a secret, never a caller's free text."""

    at: float  # seconds since the epoch
    subject: str  # a SPIFFE id, or issuer and subject of a token
    method: str  # Control/CreateActor
    target: str  # actor/<atespace>/<name>, worker/<name>, ...
    uid: str  # the target's incarnation; empty where it has none
    trace_id: str  # of the caller's trace; empty without one


@dataclass(frozen=True)
class AuditRow:
    """An entry and its place in the log; numbers grow."""

    number: int
    entry: AuditEntry


class AtespaceRows(Protocol):
    def get(self, name: str) -> pb.Atespace | None: ...
    def put(self, atespace: pb.Atespace) -> None: ...
    def delete(self, name: str) -> None: ...
    def page(self, after: str, limit: int) -> list[pb.Atespace]: ...
    def in_use(self, name: str) -> str | None:
        """What still lives in it, for people ("actors", "actor templates"), or None."""


class TemplateRows(Protocol):
    def get(self, atespace: str, name: str) -> pb.ActorTemplate | None: ...
    def put(self, template: pb.ActorTemplate) -> None: ...
    def delete(self, atespace: str, name: str) -> None: ...
    def page(self, atespace: str, after: tuple[str, str], limit: int) -> list[pb.ActorTemplate]:
        """In order of (atespace, name), after that key; an empty `atespace` means all."""

    def in_use(self, atespace: str, name: str) -> bool: ...


class ActorRows(Protocol):
    def get(self, atespace: str, name: str) -> pb.Actor | None: ...
    def by_uid(self, uid: str) -> pb.Actor | None: ...
    def if_running(self, atespace: str, name: str) -> bytes | None:
        """The serialized Actor if it is RUNNING: the warm path, one indexed look-up."""

    def put(self, actor: pb.Actor) -> None: ...
    def delete(self, uid: str) -> None: ...
    def page(self, atespace: str, after: tuple[str, str], limit: int) -> list[pb.Actor]: ...
    def in_states(self, states: Sequence[pb.ActorState], limit: int) -> list[pb.Actor]:
        """States in motion only. Any `limit` of them, so that stuck ones cannot hide the rest."""

    def on_worker(self, worker: str, after: str, limit: int) -> list[pb.Actor]:
        """Those that hold a slot there, in order of uid, after that uid."""


class WorkerRows(Protocol):
    def get(self, name: str) -> WorkerRow | None: ...
    def put(self, worker: pb.Worker, *, heartbeat_at: float, lost: bool) -> None: ...
    def heartbeat(self, name: str, at: float) -> None: ...
    def heartbeat_all(self, at: float) -> None: ...
    def delete(self, name: str) -> None: ...
    def page(self, after: str, limit: int) -> list[WorkerRow]: ...
    def with_room(self, heartbeat_after: float, *, pack: bool = False) -> Iterator[WorkerRow]:
        """Active, not lost, a slot free, heard of since then; the largest free share of slots
        first, or with `pack` the smallest."""

    def on_node(self, node: str) -> list[WorkerRow]:
        """All of that node, lost ones too."""

    def silent(self, heartbeat_before: float) -> list[WorkerRow]:
        """Lost ones, and those not heard of since then."""

    def totals(self) -> WorkerTotals: ...
    def claim(self, claim: ClaimRow) -> None:
        """Takes a slot. The caller saw room in this same transaction."""

    def release(self, actor_uid: str) -> None:
        """Gives the actor's slot back; nothing happens if it holds none."""

    def claim_of(self, actor_uid: str) -> ClaimRow | None:
        """The slot that the actor holds."""

    def claims(self, worker: str) -> list[ClaimRow]: ...
    def idle(self, worker: str, since: Mapping[str, float | None]) -> None:
        """Notes for claims on the worker since when they are idle, by actor uid. Others on it,
        and unknown uids, are left alone."""

    def idlest(self, idle_before: float, heartbeat_after: float, limit: int) -> list[ClaimRow]:
        """Claims idle since before then, the longest first, on active workers that are not lost
        and were heard of since; those of an earlier epoch than the worker's are left out."""

    def draining(self) -> list[WorkerRow]:
        """Not active, not lost, and some slot is claimed."""

    def outlived(self) -> list[ClaimRow]:
        """Claims of an incarnation that is not the worker's present one."""


class PolicyRows(Protocol):
    """Egress policies, each of one incarnation of an actor; they go with it."""

    def get(self, actor_uid: str) -> pb.EgressPolicy | None: ...
    def put(self, actor_uid: str, policy: pb.EgressPolicy) -> None:
        """The actor is stored: the caller saw it in this same transaction."""

    def delete(self, actor_uid: str) -> None: ...


class SigningKeyRows(Protocol):
    def all(self) -> list[SigningKey]:
        """In the order in which they start to sign."""

    def add(self, key: SigningKey) -> None: ...
    def delete(self, kid: str) -> None: ...


class AuditRows(Protocol):
    """Append-only: nothing changes an entry, and nothing removes one that is not a day old."""

    def append(self, entry: AuditEntry) -> None: ...
    def page(self, after: int, limit: int, *, target: str = "") -> list[AuditRow]:
        """In order, after that number; an empty `target` means all."""

    def last(self, limit: int, *, target: str = "") -> list[AuditRow]:
        """The newest ones, in order."""

    def forget(self, before: float, limit: int) -> int:
        """Removes those of the `limit` oldest that are older than that time; how many."""


class GarbageRows(Protocol):
    """Snapshots that no record names any more: deleted from storage after the commit."""

    def add(self, uri: str) -> None: ...
    def some(self, limit: int) -> list[str]:
        """Any `limit` of them."""

    def forget(self, uri: str) -> None: ...


class Transaction(Protocol):
    @property
    def atespaces(self) -> AtespaceRows: ...
    @property
    def templates(self) -> TemplateRows: ...
    @property
    def actors(self) -> ActorRows: ...
    @property
    def workers(self) -> WorkerRows: ...
    @property
    def policies(self) -> PolicyRows: ...
    @property
    def signing_keys(self) -> SigningKeyRows: ...
    @property
    def audit(self) -> AuditRows: ...
    @property
    def garbage(self) -> GarbageRows: ...


class Store(Protocol):
    async def read(self, query: Callable[[Transaction], T]) -> T:
        """Runs a read-only function. Raises BusyError."""

    async def write(self, change: Callable[[Transaction], T]) -> T:
        """Runs a function in a transaction of its own; an exception undoes it and is raised.

        A caller that leaves does not stop it. Raises BusyError, ContradictionError, and within
        `hold` HeldError once another control plane has taken the actor over.
        """

    def hold(self, actor_uid: str) -> AbstractAsyncContextManager[None]:
        """The per-actor operation lock, across control planes; it frees itself when its holder
        dies. Raises HeldError at once if it is taken, BusyError."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tells of what writes change, after they are committed, until the returned function is
        called: this control plane's, and on PostgreSQL those of every other one."""

    async def alone(self) -> bool:
        """Whether no other control plane is known to serve this store now. Raises BusyError."""

    async def close(self) -> None: ...
