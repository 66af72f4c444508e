"""From AgentGateway's file to the engine's router configuration. Pure: no file, no socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from atenet.agentgateway.listeners import listeners
from atenet.agentgateway.load import Problem
from atenet.agentgateway.model.both import ConfigFile
from atenet.agentgateway.model.ingress import Route, SubstrateIngress
from atenet.agentgateway.model.tls import BackendTLS
from atenet.agentgateway.options import Options
from atenet.agentgateway.parts import IngressPart, egress_part, ingress_part
from atenet.agentgateway.peers import control, credentials, roots
from atenet.agentgateway.process_part import PARK_BUDGET_MS, drain, given, probes, timeouts, tracing
from atenet.agentgateway.translate_egress import egress_config
from atenet.agentgateway.untranslatable import Untranslatable

__all__ = ["Options", "router_config"]


def router_config(file: ConfigFile, options: Options) -> dict[str, Any]:
    """The JSON object of `RouterConfig` (engine/atenet-engine/src/config/router.rs).

    Raises Untranslatable: every problem that only shows between the parts of the file.
    """
    ingress, egress = ingress_part(file), egress_part(file)
    router = {} if ingress is None else _ingress_config(ingress, options)
    if egress is not None:
        # What stands outside `egress` is the same in both: it comes from the same keys.
        router = egress_config(egress, options) | router
    _check_ports(router)
    return router


def _check_ports(router: dict[str, Any]) -> None:
    egress = router.get("egress")
    taken = {listener["address"] for listener in router.get("listeners", ())}
    if egress and egress["address"] in taken and not egress["address"].endswith(":0"):
        problem = f"{egress['address']} is an ingress port already"
        raise Untranslatable(Problem("binds", problem))


def _ingress_config(config: IngressPart, options: Options) -> dict[str, Any]:
    ports = listeners(config, options.bind_address)
    routes = list(_routes(config))  # at least one: every port has a route
    ingress = _one_ingress(routes)
    router: dict[str, Any] = {
        "listeners": ports,
        "control": control(*ingress[0]),
        "worker": _worker(config, routes, ingress[0][1]),
        "cache": given({"ttl_ms": _agreed(ingress, "cache_ttl", "cacheTtl")}),
        "parking": _parking(ingress),
        "timeouts": timeouts(config.config, config.frontend_policies),
        "limits": {},
        **probes(config.config, options.bind_address),
        "access_log": options.access_log,
        "tracing": tracing(config.frontend_policies.tracing),
        "threads": config.config.worker_threads,
    }
    for section, limits in options.limits.sections().items():
        router[section] |= limits
    budget = router["parking"].get("budget_ms", PARK_BUDGET_MS)
    router["drain"] = drain(config.config, budget)
    return router


Placed = tuple[str, Route]
PlacedIngress = tuple[str, SubstrateIngress]


def _routes(config: IngressPart) -> Iterator[Placed]:
    """Every route with its path in the file."""
    for index, route in enumerate(config.routes):
        yield f"routes[{index}]", route
    for at, bind in config.binds:
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


def _worker(config: IngressPart, routes: list[Placed], ingress: SubstrateIngress) -> dict[str, Any]:
    path, tls = _tunnel_tls(config, routes)
    return {
        "credentials": credentials(tls, path),
        "roots": roots(tls),
        "connect_port": ingress.connect_target_port,
        **given({"connect_timeout_ms": config.config.backend.connect_timeout}),
    }


def _tunnel_tls(config: IngressPart, routes: list[Placed]) -> tuple[str, BackendTLS]:
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


def _parking(ingress: list[PlacedIngress]) -> dict[str, Any]:
    parts = [(f"{path}.requestParking", policy.request_parking) for path, policy in ingress]

    def agreed(name: str, key: str) -> Any:
        return _agreed([(path, part) for path, part in parts], name, key)  # type: ignore[misc]

    factor = agreed("retry_factor", "retryFactor")
    # Zeros stand for the defaults, as AgentGateway has it; only `max` has a meaning at 0.
    return given(
        {
            "budget_ms": agreed("budget", "budget") or None,
            "max": agreed("max", "max"),
            "retry_interval_ms": agreed("retry_interval", "retryInterval") or None,
            "retry_factor": None if factor is None else max(factor, 1.0),
        }
    )
