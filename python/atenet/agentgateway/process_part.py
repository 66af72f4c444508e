"""`config` and `frontendPolicies` as the engine has them, for either direction. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any

from atenet.agentgateway.load import Problem
from atenet.agentgateway.model.process import FrontendPolicies, ProcessConfig, Tracing
from atenet.agentgateway.untranslatable import Untranslatable

__all__ = ["PARK_BUDGET_MS", "address", "drain", "given", "probes", "timeouts", "tracing"]

PARK_BUDGET_MS = 5_000
_STATS_PORT = 15020
_READINESS_PORT = 15021
_DRAIN_DELAY_MS = 13_000
_DRAIN_TIMEOUT_MS = 30_000


def probes(config: ProcessConfig, bind_address: str) -> dict[str, str]:
    """Where the pages for machines are served."""
    stats = config.stats_addr or address(bind_address, _STATS_PORT)
    readiness = config.readiness_addr or address(bind_address, _READINESS_PORT)
    return {
        "stats_address": _numeric(stats, "config.statsAddr"),
        "readiness_address": _numeric(readiness, "config.readinessAddr"),
    }


def timeouts(config: ProcessConfig, front: FrontendPolicies) -> dict[str, Any]:
    """Time limits of clients and of kept connections."""
    return given(
        {
            "tls_handshake_ms": front.tls.handshake_timeout,
            "client_idle_ms": front.http.http1_idle_timeout,
            "actor_idle_ms": config.backend.pool_idle_timeout,
        }
    )


def drain(config: ProcessConfig, budget_ms: int) -> dict[str, int]:
    """The file counts both limits from the signal, the engine the second from the end of the first."""
    delay = config.connection_min_termination_deadline
    delay = _DRAIN_DELAY_MS if delay is None else delay
    total = config.connection_termination_deadline
    timeout = max(_DRAIN_TIMEOUT_MS, budget_ms + 15_000) if total is None else total - delay
    if timeout <= budget_ms:
        raise Untranslatable(
            Problem(
                "config.connectionTerminationDeadline",
                f"leaves {max(timeout, 0)} ms to drain after connectionMinTerminationDeadline ({delay} ms), "
                f"which must exceed the park budget ({budget_ms} ms)",
            )
        )
    return {"delay_ms": delay, "timeout_ms": timeout}


def tracing(policy: Tracing | None) -> dict[str, Any] | None:
    """Where spans go; none: nowhere."""
    if policy is None:
        return None
    return {
        "collector": policy.host,
        "protocol": policy.protocol,
        "path": policy.path,
        "random_sampling": policy.random_sampling,
        "client_sampling": policy.client_sampling,
    }


def address(ip: str, port: int) -> str:
    """`ip:port`, IPv6 in brackets."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _numeric(address: str, path: str) -> str:
    """The file may say localhost where the engine wants an IP. `path`: the key, for the error."""
    host, _, port = address.rpartition(":")
    if host == "localhost":
        return f"127.0.0.1:{port}"
    bare = host.removeprefix("[").removesuffix("]")
    try:
        written = f"[{bare}]" if ipaddress.ip_address(bare).version == 6 else bare
    except ValueError:
        written = ""
    # A zone (`fe80::1%eth0`) is no part of what the engine listens on.
    if host != written or "%" in bare:
        problem = f"must be localhost or an IP address to listen on, not {host!r}"
        raise Untranslatable(Problem(path, problem))
    return address


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what is set: the engine has the defaults."""
    return {name: value for name, value in values.items() if value is not None}
