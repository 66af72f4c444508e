"""When a process that ended is started again."""

from atenet.local.restart import (
    FAILED_STARTS_LIMIT,
    LONGEST_DELAY,
    STEADY_SECONDS,
    RestartState,
    after_exit,
    after_ready,
)


def _ends(state: RestartState, times: int, *, was_ready: bool, ran: float) -> list[float | None]:
    delays = []
    for _ in range(times):
        if was_ready:
            state = after_ready(state)
        state, delay = after_exit(state, was_ready=was_ready, ran_seconds=ran)
        delays.append(delay)
    return delays


def test_what_never_gets_ready_is_given_up() -> None:
    delays = _ends(RestartState(), FAILED_STARTS_LIMIT, was_ready=False, ran=0.1)
    assert delays[-1] is None
    assert all(delay is not None for delay in delays[:-1])


def test_what_once_served_is_started_again_for_ever_ever_more_slowly() -> None:
    delays = _ends(RestartState(), 50, was_ready=True, ran=1.0)
    assert delays == sorted(delays, key=lambda d: d or 0)
    assert delays[0] == 0.1
    assert delays[-1] == LONGEST_DELAY


def test_a_steady_run_makes_the_next_start_quick_again() -> None:
    state = RestartState(restarts=9, in_a_row=9)
    after, delay = after_exit(state, was_ready=True, ran_seconds=STEADY_SECONDS)
    assert delay == 0.1
    assert after.restarts == 10


def test_getting_ready_forgives_failed_starts() -> None:
    state = RestartState(failed_starts=FAILED_STARTS_LIMIT - 1)
    _, delay = after_exit(after_ready(state), was_ready=False, ran_seconds=0.1)
    assert delay is not None
