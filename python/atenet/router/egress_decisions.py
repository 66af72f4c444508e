"""The engine's decision service for egress: its configuration from the settings, and its start."""

from __future__ import annotations

from typing import Any

from atenet._engine import ExtProc
from atenet.router.decisions import start_service
from atenet.router.egress_settings import EgressSettings

__all__ = ["egress_decision_config", "start_egress_decisions"]


def egress_decision_config(settings: EgressSettings) -> dict[str, Any]:
    """As engine/atenet-engine/src/config/egress.rs reads it. Pure."""
    return {
        "listen": f"127.0.0.1:{settings.port_extproc}",
        "socket": None if settings.extproc_socket is None else str(settings.extproc_socket),
        "control": _peer(
            settings, settings.ateapi_address, settings.ateapi_server_name, settings.ateapi_ca_file
        ),
        "origin_roots": str(settings.origin_ca_file),
        "allow_cidrs": list(settings.egress_allow_cidr),
        "name_servers": settings.name_servers,
        "credential_providers": _providers(settings),
        "limits": {
            "sniff_ms": _milliseconds(settings.egress_sniff_timeout),
            "recheck_ms": _milliseconds(settings.egress_recheck_interval),
            "credential_ttl_ms": _milliseconds(settings.egress_credential_ttl),
            "connect_ms": _milliseconds(settings.egress_connect_timeout),
        },
        "intercepts": settings.sdsmint_socket is not None,
        "policy_ttl_ms": _milliseconds(settings.egress_policy_cache_ttl),
    }


async def start_egress_decisions(settings: EgressSettings) -> tuple[ExtProc, int]:
    """The running service and its port. Raises AteError."""
    return await start_service(egress_decision_config(settings), "egress")


def _providers(settings: EgressSettings) -> list[dict[str, Any]]:
    address = settings.credential_provider_address
    if address is None:
        return []
    name = settings.credential_provider_server_name or address.rpartition(":")[0]
    roots = settings.credential_provider_ca_file or settings.ateapi_ca_file
    target = _peer(settings, address, name, roots)
    return [{"class": settings.credential_provider_name, "target": target}]


def _peer(settings: EgressSettings, address: str, server_name: str, roots: Any) -> dict[str, Any]:
    credential = str(settings.ateapi_client_cert)
    return {
        "address": address,
        "server_name": server_name,
        "credentials": {"cert": credential, "key": credential},
        "roots": str(roots),
    }


def _milliseconds(value: float) -> int:
    return round(value * 1000)
