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
    "PauseStep",
    "ResumeStep",
    "RevertStep",
    "SuspendStep",
    "Verdict",
    "checkpoint_verdict",
    "claim_is_good",
    "delete_step",
    "is_passing",
    "pause_step",
    "pause_verdict",
    "resume_step",
    "revert_step",
    "start_verdict",
    "suspend_step",
]


class ResumeStep(Enum):
    CLAIM = "claim"  # take a slot, store RESUMING
    THAW = "thaw"  # it is frozen in a slot: store RESUMING, the node thaws it, store RUNNING
    STORE = "store"  # its frozen memory is lost or cannot stay: suspend it from what is on disk
    START = "start"  # the node runs or restores it, then store RUNNING
    RECLAIM = "reclaim"  # the slot's worker is gone: let it go, take another
    DONE = "done"
    REFUSE = "refuse"


class SuspendStep(Enum):
    BEGIN = "begin"  # store SUSPENDING and the snapshot's name
    CHECKPOINT = "checkpoint"  # the node stores it, then store SUSPENDED
    DONE = "done"
    REFUSE = "refuse"


class PauseStep(Enum):
    BEGIN = "begin"  # store PAUSING
    FREEZE = "freeze"  # the node freezes it, then store PAUSED
    STORE = "store"  # the worker is gone: suspend it from what is on disk
    DONE = "done"
    REFUSE = "refuse"


class RevertStep(Enum):
    BEGIN = "begin"  # store REVERTING
    TERMINATE = "terminate"  # the node forgets it, then store SUSPENDED
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
    CANNOT = "cannot"  # this node cannot do it, and has changed nothing


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


def resume_step(
    state: pb.ActorState, *, claim_good: bool, frozen: bool = False, kept: bool = False
) -> ResumeStep:
    """`frozen`: it has memory in a slot; `kept`: on a node, outside any; `claim_good`: on a worker that
    takes starts."""
    if state == pb.ACTOR_STATE_RUNNING:
        return ResumeStep.DONE
    if state == pb.ACTOR_STATE_SUSPENDED or (state == pb.ACTOR_STATE_PAUSED and kept):
        return ResumeStep.CLAIM
    if state == pb.ACTOR_STATE_PAUSED or (state == pb.ACTOR_STATE_RESUMING and frozen):
        return ResumeStep.THAW if claim_good else ResumeStep.STORE
    if state == pb.ACTOR_STATE_RESUMING:
        return ResumeStep.START if claim_good else ResumeStep.RECLAIM
    return ResumeStep.REFUSE


def suspend_step(state: pb.ActorState, *, frozen: bool = False) -> SuspendStep:
    """`frozen`: a RESUMING one that was being thawed; the caller has found that it cannot be."""
    if state == pb.ACTOR_STATE_SUSPENDED:
        return SuspendStep.DONE
    if state in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSING, pb.ACTOR_STATE_PAUSED):
        return SuspendStep.BEGIN
    if state == pb.ACTOR_STATE_RESUMING and frozen:
        return SuspendStep.BEGIN
    if state == pb.ACTOR_STATE_SUSPENDING:
        return SuspendStep.CHECKPOINT
    return SuspendStep.REFUSE


def pause_step(state: pb.ActorState, *, claim_good: bool, kept: bool = False) -> PauseStep:
    """`kept`: by the node, which may have it also when the worker is gone."""
    if state == pb.ACTOR_STATE_PAUSED:
        return PauseStep.DONE
    if state == pb.ACTOR_STATE_RUNNING:
        return PauseStep.BEGIN
    if state == pb.ACTOR_STATE_PAUSING:
        return PauseStep.FREEZE if claim_good or kept else PauseStep.STORE
    return PauseStep.REFUSE


def revert_step(state: pb.ActorState) -> RevertStep:
    """A SUSPENDED actor is at its last snapshot already."""
    if state == pb.ACTOR_STATE_SUSPENDED:
        return RevertStep.DONE
    if state in (pb.ACTOR_STATE_RUNNING, pb.ACTOR_STATE_PAUSED, pb.ACTOR_STATE_CRASHED):
        return RevertStep.BEGIN
    if state == pb.ACTOR_STATE_REVERTING:
        return RevertStep.TERMINATE
    return RevertStep.REFUSE


def delete_step(state: pb.ActorState, *, any_state: bool, assigned: bool) -> DeleteStep:
    """`assigned`: a worker may still host it."""
    if state == pb.ACTOR_STATE_DELETING:
        return DeleteStep.TERMINATE if assigned else DeleteStep.REMOVE
    if any_state or state in (pb.ACTOR_STATE_SUSPENDED, pb.ACTOR_STATE_CRASHED):
        return DeleteStep.BEGIN
    return DeleteStep.REFUSE


def is_passing(code: grpc.StatusCode) -> bool:
    """Whether a refusal says nothing but "not now"."""
    return code in _NOT_NOW


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


def pause_verdict(code: grpc.StatusCode, *, claim_good: bool) -> Verdict:
    """A refused pause or thaw. MOVED: what is left of the actor is on the node's disk."""
    if not claim_good or code in _DOUBTFUL:
        return Verdict.MOVED
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return Verdict.CANNOT
    return Verdict.RETRY if code in _NOT_NOW else Verdict.FATAL
