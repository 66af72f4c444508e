"""P-07: requests per second over 1 000 actors in turn, against one actor.

The cache's time to live is raised, so that 1 000 actors do not measure the control plane of the bench.
"""

from __future__ import annotations

from benchmarks.path.against_envoy import versions
from benchmarks.path.compared import compared
from benchmarks.path.load import wrk
from benchmarks.path.ours import our_path
from benchmarks.path.turns import Numbers, bench, in_turns, observe
from benchmarks.result import Outcome

__all__ = ["take"]

_ACTORS = 1000


def take() -> Outcome:
    with bench() as made:
        side = made.stack.enter_context(
            our_path(made.root, made.identity, made.origin.address, actors=_ACTORS, cache_ttl="1h")
        )

        def over(actors: int) -> Numbers:
            # Connections to actors live for seconds only: each run begins with those of its own kind.
            wrk(f"https://{side.https}/", seconds=1, actors=actors)
            return observe(side, lambda: wrk(f"https://{side.https}/", actors=actors))

        seen = in_turns([lambda: over(_ACTORS), lambda: over(1)])
    return compared(seen, "rps", "one actor", versions=versions())
