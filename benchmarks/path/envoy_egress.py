"""`atenet router --mode=egress` as it is, but for the one thing that a measure needs; run as a program with its flags.

With `ATENET_BENCH_DECISIONS=<port>` Envoy asks the ext_proc there instead of ours; everything else stays the same.
"""

from __future__ import annotations

import os
import sys

from atenet._engine import ExtProc
from atenet.cli.atenet import main
from atenet.router import egress
from atenet.router.egress_decisions import start_egress_decisions
from atenet.router.egress_settings import EgressSettings

from benchmarks.path.envoy_router import ELSEWHERE

__all__: list[str] = []


async def _elsewhere(settings: EgressSettings) -> tuple[ExtProc, int]:
    service, _ = await start_egress_decisions(settings)
    return service, int(os.environ[ELSEWHERE])


if __name__ == "__main__":
    if ELSEWHERE in os.environ:
        vars(egress).update(start_egress_decisions=_elsewhere)
    sys.exit(main())
