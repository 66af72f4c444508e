"""When to ask for the next tunnel certificate. Pure: times in, seconds out."""

from __future__ import annotations

import grpc

__all__ = ["TERMINAL", "after_failure", "after_success"]

# The control plane will never mint for this activation again: it is another actor's time.
TERMINAL = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)

_SHARE = 0.9
_SOONEST = 1.0
_LONGEST = 30.0


def after_success(remaining: float) -> float:
    """Seconds to wait with `remaining` seconds of life: a tenth is left for what goes wrong."""
    return max(_SOONEST, _SHARE * remaining)


def after_failure(remaining: float, failures: int, jitter: float) -> float:
    """Seconds to wait after so many failures in a row (from 1). `jitter`: 0 to 1.

    While the certificate lives there is time, and less and less of it. Afterwards the actor is cut
    off, so the first tries come soon; many workers that lost the same control plane spread out.
    """
    if remaining > 0:
        return max(_SOONEST, min(_LONGEST, remaining / 10))
    backoff = min(_LONGEST, _SOONEST * 2.0 ** min(failures - 1, 10))
    return backoff * (0.85 + 0.3 * jitter)
