"""`atenet router --mode=egress`: decisions and resources of the egress gateway, beside Envoy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from atenet._engine import ExtProc
from atenet.daemon import Stop
from atenet.denials.server import serving_denials
from atenet.router import serving
from atenet.router.control_check import health
from atenet.router.egress_decisions import start_egress_decisions
from atenet.router.egress_settings import EgressSettings
from atenet.router.resources.egress import build_egress_snapshot
from atenet.router.traffic import egress_traffic

__all__ = ["run"]


async def run(settings: EgressSettings, stop: Stop) -> None:
    """Serves until `stop`, then drains; a second signal ends it at once. Raises AteError."""
    serving.prepare(settings)
    service, port = await start_egress_decisions(settings)

    def show(decided: dict[str, Any]) -> dict[str, Any]:
        return {"deciding": decided["deciding"], "tunnels": decided["tunnels"]}

    await serving.serve(
        settings,
        stop,
        decisions=(service, str(settings.extproc_socket or f"127.0.0.1:{port}")),
        snapshot=build_egress_snapshot(settings, decisions_port=port),
        measure=egress_traffic,
        show=show,
        ask=health,
        beside=_denials(settings, service),
    )


@contextmanager
def _denials(settings: EgressSettings, service: ExtProc) -> Iterator[dict[str, str]]:
    with serving_denials(settings, service.denials) as address:
        yield {} if address is None else {"denials": address}
