"""Resource records: what the server stamps on them. Pure: the time is given."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from atenet.ateapi.failure import aborted
from atenet.identity.spiffe import pod_id
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "FROZEN",
    "Clock",
    "actor_label",
    "assignment_for",
    "check_options",
    "created",
    "is_frozen",
    "is_kept",
    "stamp",
    "state_word",
    "touched",
]

# What the name of a local snapshot begins with that is a frozen process tree.
FROZEN = "frozen/"

Clock = Callable[[], float]
"""Seconds since the epoch."""


def stamp(now: float) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(datetime.fromtimestamp(now, UTC))
    return made


def created(meta: pb.ResourceMetadata, now: float) -> None:
    """A new incarnation: its own uid, version 1."""
    meta.uid = str(uuid.uuid4())
    meta.version = 1
    meta.create_time.CopyFrom(stamp(now))
    meta.update_time.CopyFrom(stamp(now))


def touched(meta: pb.ResourceMetadata, now: float) -> None:
    """A change: the version grows."""
    meta.version += 1
    meta.update_time.CopyFrom(stamp(now))


def check_options(options: pb.DeleteOptions, meta: pb.ResourceMetadata) -> None:
    """Aborted unless uid and version, where given, are those of the record."""
    if options.uid and options.uid != meta.uid:
        raise aborted(f"{meta.name} has another uid: it was deleted and made again")
    if options.version and options.version != meta.version:
        raise aborted(f"{meta.name} is at version {meta.version}, not {options.version}")


def assignment_for(worker: pb.Worker) -> pb.WorkerAssignment:
    """Where an actor is that holds a slot on this worker."""
    default_id = pod_id(worker.worker_namespace, worker.worker_pool)
    return pb.WorkerAssignment(
        worker_namespace=worker.worker_namespace,
        worker_pool=worker.worker_pool,
        worker_pod=worker.worker_pod,
        worker_pod_uid=worker.worker_pod_uid,
        worker_pod_ips=worker.ips,
        worker=pb.ObjectRef(name=worker.metadata.name),
        node_name=worker.node_name,
        worker_epoch=worker.epoch,
        worker_spiffe_id=worker.spiffe_id or default_id,
    )


def is_frozen(actor: pb.Actor) -> bool:
    """It stands still in a slot that it holds, or is on its way there or back."""
    return actor.status.local_snapshot.snapshot_name.startswith(FROZEN)


def is_kept(actor: pb.Actor) -> bool:
    """A node keeps its memory and its files; it holds no slot for that."""
    return actor.status.HasField("local_snapshot") and not is_frozen(actor)


def actor_label(actor: pb.Actor) -> str:
    """How people know it."""
    return f"actor {actor.metadata.atespace}/{actor.metadata.name}"


def state_word(state: pb.ActorState) -> str:
    """RUNNING for ACTOR_STATE_RUNNING."""
    return pb.ActorState.Name(state).removeprefix("ACTOR_STATE_")
