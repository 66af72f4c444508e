"""`atenet router` as it is, but for two things that a measure needs; run as a program with its flags.

wrk cannot show a certificate, so clients are not asked for one. With `ATENET_BENCH_DECISIONS=<port>` Envoy asks the
ext_proc there instead of ours; everything else stays the same.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from atenet._engine import ExtProc
from atenet.cli.atenet import main
from atenet.router import ingress
from atenet.router.decisions import start_decisions
from atenet.router.resources import listeners
from atenet.router.resources.tls import downstream_tls
from atenet.router.settings import Settings

__all__ = ["ELSEWHERE"]

ELSEWHERE = "ATENET_BENCH_DECISIONS"

_one_identity = listeners._one_identity


def _open_tls(settings: Settings, alpn: list[str]) -> dict[str, Any]:
    socket = downstream_tls(settings, alpn)
    context = socket["typed_config"]
    context["require_client_certificate"] = False
    # The authorities stay: they are one of the secrets that Envoy must have taken before it counts as ready.
    validation = context["common_tls_context"]["combined_validation_context"]
    validation["default_validation_context"] = {"trust_chain_verification": "ACCEPT_UNTRUSTED"}
    return socket


def _anybody(settings: Settings) -> dict[str, Any]:
    identity = _one_identity(settings)
    matcher = identity["typed_config"]["matcher"]
    matcher["on_no_match"] = next(iter(matcher["matcher_tree"]["exact_match_map"]["map"].values()))
    return identity


async def _elsewhere(settings: Settings) -> tuple[ExtProc, int]:
    service, _ = await start_decisions(settings)
    return service, int(os.environ[ELSEWHERE])


if __name__ == "__main__":
    vars(listeners).update(downstream_tls=_open_tls, _one_identity=_anybody)
    if ELSEWHERE in os.environ:
        vars(ingress).update(start_decisions=_elsewhere)
    sys.exit(main())
