"""Takes measures: `python -m benchmarks [--only P-21]`."""

from __future__ import annotations

import argparse
import json
import sys
import time

from benchmarks.goals import GOALS
from benchmarks.measures import available
from benchmarks.plot import plot
from benchmarks.result import write
from benchmarks.table import PAGE, update


def main() -> int:
    """Exit 0 whether or not goals are met: a missed goal is a result, a failed run is not."""
    takers = available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(GOALS), help="one measure")
    only = parser.parse_args().only
    if only and only not in takers:
        print(f"error: {only} cannot be taken yet\nhint: there are {', '.join(takers)}")
        return 2
    for identity in [only] if only else list(takers):
        goal, began = GOALS[identity], time.monotonic()
        print(f"==> {identity}: {goal.what}", flush=True)
        outcome = takers[identity]()
        path = write(identity, goal.unit, outcome, f"make bench ONLY={identity}")
        plot(json.loads(path.read_text()))
        met = "met" if goal.met(outcome.value) else "MISSED"
        took = time.monotonic() - began
        print(f"    {outcome.value:.3g} {goal.unit}, goal {goal.text}: {met} ({took:.0f} s)")
    update()
    print(f"==> table in {PAGE.relative_to(PAGE.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
