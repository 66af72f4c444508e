"""P-19: interception leaves minted per second on one core: key, certificate and the TLS server that shows it."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from atenet._engine import minting_seconds
from atenet.identity import LocalIdentity

from benchmarks.result import Outcome

__all__ = ["take"]

_RUNS = 7
_LEAVES = 2_000


def take() -> Outcome:
    with tempfile.TemporaryDirectory(prefix="ate-bench-") as directory:
        LocalIdentity(Path(directory)).ensure()
        ca = Path(directory) / "ca"
        pair = (str(ca / "egress-mitm.crt"), str(ca / "egress-mitm.key"))
        runs = [{"value": 1 / minting_seconds(*pair, _LEAVES)} for _ in range(_RUNS)]
    value = statistics.median(run["value"] for run in runs)
    return Outcome(value=value, ours=value, runs=runs)
