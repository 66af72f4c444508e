"""The engine's decision service: its configuration from the settings, and its start."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from atenet._engine import EngineError, ExtProc
from atenet.errors import AteError
from atenet.router.settings import Settings

__all__ = ["decision_config", "start_decisions", "start_service"]


def decision_config(settings: Settings) -> dict[str, Any]:
    """As engine/atenet-engine/src/config/extproc.rs reads it. Pure."""
    collector = settings.otlp_collector_address
    credential = str(settings.ateapi_client_cert)
    return {
        "listen": f"127.0.0.1:{settings.port_extproc}",
        "connect_port": settings.worker_port,
        "control": {
            "address": settings.ateapi_address,
            "server_name": settings.ateapi_server_name,
            "credentials": {"cert": credential, "key": credential},
            "roots": str(settings.ateapi_ca_file),
        },
        "parking": {
            "budget_ms": _milliseconds(settings.parked_request_budget),
            "max": settings.parked_request_max,
            "retry_interval_ms": _milliseconds(settings.parked_request_retry_interval),
            "retry_factor": settings.parked_request_retry_factor,
        },
        "tracing": None
        if collector is None
        # Envoy has decided whether a request is recorded by the time it asks.
        else {"collector": str(collector), "protocol": "http", "random_sampling": 1.0},
    }


async def start_decisions(settings: Settings) -> tuple[ExtProc, int]:
    """The running service and its port. Raises AteError."""
    return await start_service(decision_config(settings), "ingress")


async def start_service(config: dict[str, Any], mode: str) -> tuple[ExtProc, int]:
    """The same for either direction."""
    try:
        service = ExtProc(json.dumps(config), mode)
        address = await asyncio.to_thread(service.start)
    except (ValueError, EngineError) as error:
        raise AteError(str(error), hint="correct the flag, or the file it names") from error
    port = address.rpartition(":")[2]
    return service, int(port) if port.isdecimal() else 0


def _milliseconds(value: float) -> int:
    return round(value * 1000)
