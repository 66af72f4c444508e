"""The next step of each workflow. Pure: a stored state in, a decision out.

A workflow has no memory but the actor's record. Its state says what was intended before the
last side effect, so the same decision is right for a first call, for a retry, and after the
control plane was killed at any point.
"""

from __future__ import annotations

from enum import Enum

import grpc

from atenet.ateapi.store import WorkerRow
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "DeleteStep",
    "ResumeStep",
    "SuspendStep",
    "Verdict",
    "checkpoint_verdict",
    "claim_is_good",
    "delete_step",
    "resume_step",
    "start_verdict",
    "suspend_step",
]


class ResumeStep(Enum):
    CLAIM = "claim"  # take a slot, store RESUMING
    START = "start"  # the node runs or restores it, then store RUNNING
    RECLAIM = "reclaim"  # the slot's worker is gone: let it go, take another
    DONE = "done"
    REFUSE = "refuse"


class SuspendStep(Enum):
    BEGIN = "begin"  # store SUSPENDING and the snapshot's name
    CHECKPOINT = "checkpoint"  # the node stores it, then store SUSPENDED
    DONE = "done"
    REFUSE = "refuse"


class DeleteStep(Enum):
    BEGIN = "begin"  # store DELETING
    TERMINATE = "terminate"  # the node forgets it
    REMOVE = "remove"  # forget the record, leave the snapshots to the sweep
    REFUSE = "refuse"


class Verdict(Enum):
    """What a node agent's refusal means."""

    RETRY = "retry"  # not now
    MOVED = "moved"  # the worker is not the one that the claim names
    DOUBT = "doubt"  # moved or fatal; the registry will show
    FATAL = "fatal"  # for good


_NOT_NOW = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        # A wrong role or certificate is an operator's to mend; no actor crashes for it.
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)
_DOUBTFUL = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND})


def claim_is_good(
    assignment: pb.WorkerAssignment, row: WorkerRow | None, heard_after: float
) -> bool:
    """Whether the claimed incarnation of the worker is alive as far as is known."""
    return (
        row is not None
        and not row.lost
        and row.worker.epoch == assignment.worker_epoch
        and row.heartbeat_at > heard_after
    )


def resume_step(state: pb.ActorState, *, claim_good: bool) -> ResumeStep:
    if state == pb.ACTOR_STATE_RUNNING:
        return ResumeStep.DONE
    if state in (pb.ACTOR_STATE_SUSPENDED, pb.ACTOR_STATE_PAUSED):
        return ResumeStep.CLAIM
    if state == pb.ACTOR_STATE_RESUMING:
        return ResumeStep.START if claim_good else ResumeStep.RECLAIM
    return ResumeStep.REFUSE


def suspend_step(state: pb.ActorState) -> SuspendStep:
    if state == pb.ACTOR_STATE_SUSPENDED:
        return SuspendStep.DONE
    if state in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED):
        return SuspendStep.BEGIN
    if state == pb.ACTOR_STATE_SUSPENDING:
        return SuspendStep.CHECKPOINT
    return SuspendStep.REFUSE


def delete_step(state: pb.ActorState, *, any_state: bool, assigned: bool) -> DeleteStep:
    """`assigned`: a worker may still host it."""
    if state == pb.ACTOR_STATE_DELETING:
        return DeleteStep.TERMINATE if assigned else DeleteStep.REMOVE
    if any_state or state in (pb.ACTOR_STATE_SUSPENDED, pb.ACTOR_STATE_CRASHED):
        return DeleteStep.BEGIN
    return DeleteStep.REFUSE


def start_verdict(code: grpc.StatusCode, *, claim_good: bool) -> Verdict:
    """A refused start; see the table in ARCHITECTURE.md."""
    if not claim_good:
        return Verdict.MOVED
    if code in _NOT_NOW:
        return Verdict.RETRY
    return Verdict.DOUBT if code in _DOUBTFUL else Verdict.FATAL


def checkpoint_verdict(code: grpc.StatusCode, *, claim_good: bool, node_given_up: bool) -> Verdict:
    """A refused checkpoint. The files are on the claim's node, so a lost worker alone does not
    end the matter; a node that was silent for too long (`node_given_up`) does.
    """
    if code in _NOT_NOW:
        return Verdict.FATAL if node_given_up else Verdict.RETRY
    if code in _DOUBTFUL:
        return Verdict.DOUBT if claim_good else Verdict.MOVED
    return Verdict.FATAL
