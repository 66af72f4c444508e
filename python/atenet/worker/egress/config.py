"""From the worker's flags to the engine's configuration of its egress end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.worker.network import GATEWAY_ADDRESS
from atenet.worker.resolv_conf import name_servers, resolver_address
from atenet.worker.settings import WorkerSettings

__all__ = ["capture_config"]

_RESOLV_CONF = Path("/etc/resolv.conf")


def capture_config(settings: WorkerSettings) -> dict[str, Any]:
    """Raises AteError when the node's resolvers are needed and there are none."""
    config: dict[str, Any] = {
        "address": GATEWAY_ADDRESS,
        "capture_port": settings.capture_port,
        "limits": {"connections": settings.egress_connections},
        "dns": {
            "answers": settings.dns_answers,
            "range": settings.dns_range,
            "upstream": _upstream(settings) if settings.dns_answers == "upstream" else [],
        },
    }
    if settings.egress_gateway_trust is not None:
        config["gateway"] = {
            "trust_bundle": os.fspath(settings.egress_gateway_trust),
            "server_name": settings.egress_gateway_server_name,
        }
    return config


def _upstream(settings: WorkerSettings) -> list[str]:
    if settings.dns_upstream:
        return [resolver_address(text) for text in settings.dns_upstream]
    try:
        found = name_servers(_RESOLV_CONF.read_text())
    except OSError as e:
        raise AteError(f"cannot read {_RESOLV_CONF}: {e.strerror}", hint=_HINT) from e
    if not found:
        raise AteError(f"{_RESOLV_CONF} names no resolver", hint=_HINT)
    return found


_HINT = "give --dns-upstream, or leave --dns-answers at synthetic"
