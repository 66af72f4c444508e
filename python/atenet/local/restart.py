"""When a process that ended is started again, and when not. Pure: no clock, no process."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["FAILED_STARTS_LIMIT", "RestartState", "after_exit", "after_ready"]

FIRST_DELAY = 0.1
FACTOR = 2.0
LONGEST_DELAY = 10.0
# A run this long wipes the slate: what ends it is news, not the old fault again.
STEADY_SECONDS = 30.0
# What never once got ready is broken in a way that waiting does not mend.
FAILED_STARTS_LIMIT = 5


@dataclass(frozen=True)
class RestartState:
    """What is remembered of a process's past."""

    restarts: int = 0  # in all
    in_a_row: int = 0  # ends since the last steady run
    failed_starts: int = 0  # ends before ready, in a row


def after_ready(state: RestartState) -> RestartState:
    """The process serves: failed starts are forgotten, the delay is not until it proves steady."""
    return replace(state, failed_starts=0)


def after_exit(
    state: RestartState, *, was_ready: bool, ran_seconds: float
) -> tuple[RestartState, float | None]:
    """The new state, and the delay in seconds before the next start; None = give up."""
    steady = was_ready and ran_seconds >= STEADY_SECONDS
    in_a_row = 1 if steady else state.in_a_row + 1
    failed = 0 if was_ready else state.failed_starts + 1
    after = RestartState(state.restarts + 1, in_a_row, failed)
    if failed >= FAILED_STARTS_LIMIT:
        return after, None
    return after, min(FIRST_DELAY * FACTOR ** (in_a_row - 1), LONGEST_DELAY)
