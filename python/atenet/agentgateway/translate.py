"""From AgentGateway's file to the engine's router configuration. Pure: no file, no socket."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from atenet.agentgateway.limits import Limits
from atenet.agentgateway.listeners import listeners
from atenet.agentgateway.load import Problem
from atenet.agentgateway.model import AgentGatewayConfig
from atenet.agentgateway.model.ingress import Route, SubstrateIngress
from atenet.agentgateway.model.process import Tracing
from atenet.agentgateway.model.tls import BackendTLS
from atenet.agentgateway.untranslatable import Untranslatable

__all__ = ["Options", "router_config"]

_STATS_PORT = 15020
_READINESS_PORT = 15021
_DRAIN_DELAY_MS = 13_000
_DRAIN_TIMEOUT_MS = 30_000
_PARK_BUDGET_MS = 5_000


@dataclass(frozen=True)
class Options:
    """What is not the file's to say. `bind_address`: an IP; listeners get it where the file names only a port."""

    bind_address: str
    access_log: bool = True
    limits: Limits = field(default_factory=Limits)


def router_config(config: AgentGatewayConfig, options: Options) -> dict[str, Any]:
    """The JSON object of `RouterConfig` (engine/atenet-engine/src/config/router.rs).

    Raises Untranslatable: every problem that only shows between the parts of the file.
    """
    ports = listeners(config, options.bind_address)
    routes = list(_routes(config))  # at least one: every port has a route
    ingress = _one_ingress(routes)
    router: dict[str, Any] = {
        "listeners": ports,
        "control": _control(*ingress[0]),
        "worker": _worker(config, routes, ingress[0][1]),
        "cache": _given({"ttl_ms": _agreed(ingress, "cache_ttl", "cacheTtl")}),
        "parking": _parking(ingress),
        "timeouts": _timeouts(config),
        "stats_address": config.config.stats_addr or _address(options.bind_address, _STATS_PORT),
        "readiness_address": config.config.readiness_addr
        or _address(options.bind_address, _READINESS_PORT),
        "access_log": options.access_log,
        "tracing": _tracing(config.frontend_policies.tracing),
        "threads": config.config.worker_threads,
    }
    for name in ("stats_address", "readiness_address"):
        router[name] = _numeric(router[name])
    for section, limits in options.limits.sections().items():
        router[section] |= limits
    router["drain"] = _drain(config, router["parking"].get("budget_ms", _PARK_BUDGET_MS))
    return router


Placed = tuple[str, Route]
PlacedIngress = tuple[str, SubstrateIngress]


def _routes(config: AgentGatewayConfig) -> Iterator[Placed]:
    """Every route with its path in the file."""
    for index, route in enumerate(config.routes):
        yield f"routes[{index}]", route
    for at, bind in enumerate(config.binds):
        for index, route in enumerate(bind.listeners[0].routes):
            yield f"binds[{at}].listeners[0].routes[{index}]", route


def _one_ingress(routes: list[Placed]) -> list[PlacedIngress]:
    """The process has one cache, one parking lot and one control plane: all policies must mean the same."""
    found = [
        (f"{path}.policies.substrateIngress", route.policies.substrate_ingress)
        for path, route in routes
    ]
    first_path, first = found[0]
    for path, other in found[1:]:
        for name, key in (
            ("host", "host"),
            ("policies", "policies"),
            ("connect_target_port", "connectTargetPort"),
        ):
            if getattr(first, name) != getattr(other, name):
                raise Untranslatable(
                    Problem(f"{path}.{key}", f"differs from {first_path}.{key}; one router has one")
                )
    return found


def _agreed(ingress: list[PlacedIngress], name: str, key: str) -> Any:
    """The value that is set, where it is set; two that differ are a mistake."""
    given = [
        (path, getattr(policy, name))
        for path, policy in ingress
        if getattr(policy, name) is not None
    ]
    for path, value in given[1:]:
        if value != given[0][1]:
            raise Untranslatable(
                Problem(f"{path}.{key}", f"differs from {given[0][0]}.{key}; one router has one")
            )
    return given[0][1] if given else None


def _control(path: str, policy: SubstrateIngress) -> dict[str, Any]:
    tls = policy.policies.backend_tls
    host = policy.host.rpartition(":")[0].strip("[]")
    return {
        "address": policy.host,
        "server_name": tls.hostname or host,
        "credentials": _credentials(tls, f"{path}.policies.backendTLS"),
        "roots": _roots(tls),
    }


def _worker(
    config: AgentGatewayConfig, routes: list[Placed], ingress: SubstrateIngress
) -> dict[str, Any]:
    path, tls = _tunnel_tls(config, routes)
    return {
        "credentials": _credentials(tls, path),
        "roots": _roots(tls),
        "connect_port": ingress.connect_target_port,
        **_given({"connect_timeout_ms": config.config.backend.connect_timeout}),
    }


def _tunnel_tls(config: AgentGatewayConfig, routes: list[Placed]) -> tuple[str, BackendTLS]:
    names = {f"/{backend.name}": index for index, backend in enumerate(config.backends)}
    used = set()
    for path, route in routes:
        reference = route.backends[0].backend
        if reference not in names:
            raise Untranslatable(_no_backend(f"{path}.backends[0].backend", reference, names))
        used.add(names[reference])
    if len(used) > 1:
        raise Untranslatable(Problem("backends", "all routes must use the same workers' backend"))
    index = used.pop()
    tunnel = config.backends[index].policies.backend_tunnel
    path = f"backends[{index}].policies.backendTunnel"
    if tunnel.proxy.backend not in names:
        raise Untranslatable(_no_backend(f"{path}.proxy.backend", tunnel.proxy.backend, names))
    return f"{path}.policies.backendTLS", tunnel.policies.backend_tls


def _no_backend(path: str, reference: str, names: dict[str, int]) -> Problem:
    return Problem(path, f"no backend {reference!r}; there is {', '.join(sorted(names)) or 'none'}")


def _credentials(tls: BackendTLS, path: str) -> dict[str, str]:
    for key in ("cert", "key"):
        if getattr(tls, key) is None:
            raise Untranslatable(
                Problem(f"{path}.{key}", "is required: the peer asks for a client certificate")
            )
    return {"cert": str(tls.cert), "key": str(tls.key)}


def _roots(tls: BackendTLS) -> str:
    system = ssl.get_default_verify_paths()
    return tls.root or system.cafile or system.openssl_cafile


def _parking(ingress: list[PlacedIngress]) -> dict[str, Any]:
    parts = [(f"{path}.requestParking", policy.request_parking) for path, policy in ingress]

    def agreed(name: str, key: str) -> Any:
        return _agreed([(path, part) for path, part in parts], name, key)  # type: ignore[misc]

    factor = agreed("retry_factor", "retryFactor")
    # Zeros stand for the defaults, as AgentGateway has it; only `max` has a meaning at 0.
    return _given(
        {
            "budget_ms": agreed("budget", "budget") or None,
            "max": agreed("max", "max"),
            "retry_interval_ms": agreed("retry_interval", "retryInterval") or None,
            "retry_factor": None if factor is None else max(factor, 1.0),
        }
    )


def _timeouts(config: AgentGatewayConfig) -> dict[str, Any]:
    front = config.frontend_policies
    return _given(
        {
            "tls_handshake_ms": front.tls.handshake_timeout,
            "client_idle_ms": front.http.http1_idle_timeout,
            "actor_idle_ms": config.config.backend.pool_idle_timeout,
        }
    )


def _drain(config: AgentGatewayConfig, budget_ms: int) -> dict[str, int]:
    """The file counts both limits from the signal, the engine the second from the end of the first."""
    delay = config.config.connection_min_termination_deadline
    delay = _DRAIN_DELAY_MS if delay is None else delay
    total = config.config.connection_termination_deadline
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


def _tracing(tracing: Tracing | None) -> dict[str, Any] | None:
    if tracing is None:
        return None
    return {
        "collector": tracing.host,
        "protocol": tracing.protocol,
        "path": tracing.path,
        "random_sampling": tracing.random_sampling,
        "client_sampling": tracing.client_sampling,
    }


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _numeric(address: str) -> str:
    """The file may say localhost where the engine wants an IP."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host == "localhost" else address


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what is set: the engine has the defaults."""
    return {name: value for name, value in values.items() if value is not None}
