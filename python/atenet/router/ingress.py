"""`atenet router --mode=ingress`: decisions and resources of the ingress, beside Envoy."""

from __future__ import annotations

from typing import Any

from atenet.daemon import Stop
from atenet.router import serving
from atenet.router.control_check import list_one
from atenet.router.decisions import start_decisions
from atenet.router.resources import build_snapshot
from atenet.router.settings import Settings
from atenet.router.traffic import ingress_traffic

__all__ = ["run"]


async def run(settings: Settings, stop: Stop) -> None:
    """Serves until `stop`, then drains; a second signal ends it at once. Raises AteError."""
    serving.prepare(settings)
    service, port = await start_decisions(settings)

    def show(decided: dict[str, Any]) -> dict[str, Any]:
        parking = {"enabled": settings.parked_request_max > 0, **decided["parking"]}
        return {
            "deciding": decided["deciding"],
            "parking": {**parking, "max_wait_seconds": settings.parked_request_budget},
        }

    await serving.serve(
        settings,
        stop,
        decisions=(service, f"127.0.0.1:{port}"),
        snapshot=build_snapshot(settings, decisions_port=port),
        measure=ingress_traffic,
        show=show,
        ask=list_one,
    )
