"""From AgentGateway's file of an egress gateway to the engine's configuration. Pure: no file, no socket."""

from __future__ import annotations

from typing import Any

from atenet.agentgateway.load import Problem
from atenet.agentgateway.model.egress import EgressBind, EgressRoute, SubstrateEgress
from atenet.agentgateway.options import Options
from atenet.agentgateway.parts import EgressPart
from atenet.agentgateway.peers import control, roots
from atenet.agentgateway.process_part import (
    PARK_BUDGET_MS,
    address,
    drain,
    probes,
    timeouts,
    tracing,
)
from atenet.agentgateway.untranslatable import Untranslatable

__all__ = ["egress_config"]

_RESOLUTION = "frontendPolicies.substrateEgressActorResolution"


def egress_config(config: EgressPart, options: Options) -> dict[str, Any]:
    """The JSON object of `RouterConfig` with its `egress` (engine/atenet-engine/src/config/egress.rs).

    Raises Untranslatable: every problem that only shows between the parts of the file.
    """
    (port_path, port), (inside_path, inside) = _two(config)
    router: dict[str, Any] = {
        "egress": _egress(config, (port_path, port), (inside_path, inside), options),
        "timeouts": timeouts(config.config, config.frontend_policies),
        **probes(config.config, options.bind_address),
        "access_log": options.access_log,
        "tracing": tracing(config.frontend_policies.tracing),
        "threads": config.config.worker_threads,
        "drain": drain(config.config, PARK_BUDGET_MS),
    }
    router["timeouts"] |= options.limits.sections()["timeouts"]
    return router


Placed = tuple[str, EgressBind]


def _two(config: EgressPart) -> tuple[Placed, Placed]:
    placed = [(f"binds[{index}]", bind) for index, bind in config.binds]
    standard = [entry for entry in placed if entry[1].mode == "standard"]
    internal = [entry for entry in placed if entry[1].mode == "internal"]
    if len(standard) != 1 or len(internal) != 1:
        problem = "an egress gateway has one bind for tunnels and one with mode: internal"
        raise Untranslatable(Problem("binds", problem))
    return standard[0], internal[0]


def _egress(config: EgressPart, port: Placed, inside: Placed, options: Options) -> dict[str, Any]:
    listener = port[1].listeners[0]
    tls = listener.tls
    assert tls is not None  # the model has checked it
    number = port[1].port or 0
    routes = _routes(*inside)
    path, policy = _one_policy(routes, config)
    interception = [entry.tls for entry in inside[1].listeners if entry.tls is not None]
    return {
        "name": listener.name or f"bind/{number}",
        "address": address(options.bind_address, number),
        "tls": {"cert": tls.cert, "key": tls.key},
        "client_roots": tls.root,
        "control": control(_RESOLUTION, config.frontend_policies.substrate_egress_actor_resolution),
        "interception": {"cert": interception[0].cert, "key": interception[0].key}
        if interception
        else None,
        "origin_roots": _origin_roots(routes),
        "credential_providers": [
            {
                "class": provider.uri_authority,
                "target": control(f"{path}.credentialProviders[{index}].target", provider.target),
            }
            for index, provider in enumerate(policy.credential_providers)
        ],
        **options.limits.egress(),
    }


PlacedRoute = tuple[str, EgressRoute]


def _routes(path: str, bind: EgressBind) -> list[PlacedRoute]:
    return [
        (f"{path}.listeners[{at}].routes[{index}]", route)
        for at, listener in enumerate(bind.listeners)
        for index, route in enumerate(listener.routes)
    ]


def _one_policy(routes: list[PlacedRoute], config: EgressPart) -> tuple[str, SubstrateEgress]:
    """The process has one control plane and one set of providers: all policies must mean the same."""
    found = [
        (f"{path}.policies.substrateEgress", route.policies.substrate_egress)
        for path, route in routes
    ]
    resolution = config.frontend_policies.substrate_egress_actor_resolution
    first_path, first = found[0]
    for path, policy in found:
        if (policy.host, policy.policies) != (resolution.host, resolution.policies):
            raise Untranslatable(
                Problem(f"{path}.host", f"differs from {_RESOLUTION}; one gateway has one")
            )
        if policy.credential_providers != first.credential_providers:
            problem = f"differs from {first_path}.credentialProviders; one gateway has one"
            raise Untranslatable(Problem(f"{path}.credentialProviders", problem))
    return first_path, first


def _origin_roots(routes: list[PlacedRoute]) -> str:
    """Only intercepted requests travel in TLS of ours; the routes beside may say the same or nothing."""
    named = [(path, route.backends[0].policies.backend_tls) for path, route in routes]
    for path, tls in named:
        for key in ("cert", "key", "hostname", "insecure_host"):
            if getattr(tls, key):
                problem = (
                    "is not supported: origins are verified by name and see no certificate of ours"
                )
                raise Untranslatable(
                    Problem(f"{path}.backends[0].policies.backendTLS.{key}", problem)
                )
    given = [entry for entry in named if entry[1].root is not None]
    for path, tls in given[1:]:
        if tls.root != given[0][1].root:
            problem = f"differs from {given[0][0]}; one gateway has one"
            raise Untranslatable(Problem(f"{path}.backends[0].policies.backendTLS.root", problem))
    return roots((given or named)[0][1])
