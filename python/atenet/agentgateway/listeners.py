"""Which ports the router listens on: gateways with a route, and CONNECT binds."""

from __future__ import annotations

from typing import Any

from atenet.agentgateway.load import Problem
from atenet.agentgateway.model.listen import Bind, BindListener, Gateway
from atenet.agentgateway.parts import IngressPart
from atenet.agentgateway.untranslatable import Untranslatable

__all__ = ["listeners"]


def listeners(config: IngressPart, bind_address: str) -> list[dict[str, Any]]:
    """The engine's listeners. Raises Untranslatable for ports without routes and routes without ports."""
    _check_references(config)
    found = [
        _direct(config, name, gateway, bind_address) for name, gateway in config.gateways.items()
    ]
    standard = [entry for entry in config.binds if entry[1].mode == "standard"]
    _check_internal(config, standard)
    found += [_bound(index, bind, bind_address) for index, bind in standard]
    if not found:
        raise Untranslatable(Problem("gateways", "there is no port to listen on"))
    _check_ports(config)
    return found


def _check_references(config: IngressPart) -> None:
    for index, route in enumerate(config.routes):
        for name in route.gateways:
            if name not in config.gateways:
                known = ", ".join(config.gateways) or "none"
                raise Untranslatable(
                    Problem(f"routes[{index}].gateways", f"no gateway {name!r}; there is {known}")
                )


def _check_internal(config: IngressPart, standard: list[tuple[int, Bind]]) -> None:
    internal = [index for index, bind in config.binds if bind.mode == "internal"]
    if len(internal) > 1:
        raise Untranslatable(
            Problem(f"binds[{internal[1]}]", "only one internal bind can be the tunnels' inside")
        )
    connect = [index for index, bind in standard if bind.tunnel_protocol == "connect"]
    if connect and not internal:
        problem = "needs a bind with mode: internal whose route has substrateIngress"
        raise Untranslatable(Problem(f"binds[{connect[0]}]", problem))


def _check_ports(config: IngressPart) -> None:
    claims = [(f"gateways.{name}.port", gateway.port) for name, gateway in config.gateways.items()]
    claims += [(f"binds[{index}].port", bind.port or 0) for index, bind in config.binds]
    taken: dict[int, str] = {}
    for path, port in claims:
        if port and port in taken:
            raise Untranslatable(Problem(path, f"port {port} is claimed by {taken[port]} already"))
        taken[port] = path


def _direct(config: IngressPart, name: str, gateway: Gateway, ip: str) -> dict[str, Any]:
    if not any(name in route.gateways for route in config.routes):
        raise Untranslatable(Problem(f"gateways.{name}", "no route names this gateway"))
    return _listener(name, "direct", gateway.port, gateway, ip)


def _bound(index: int, bind: Bind, ip: str) -> dict[str, Any]:
    listener = bind.listeners[0]
    port = bind.port or 0
    connect = bind.tunnel_protocol == "connect"
    if not connect and not listener.routes:
        raise Untranslatable(
            Problem(f"binds[{index}].listeners[0].routes", "a bind for requests needs a route")
        )
    name = listener.name or f"bind/{port or index}"
    return _listener(name, "connect" if connect else "direct", port, listener, ip)


def _listener(
    name: str, mode: str, port: int, entry: Gateway | BindListener, ip: str
) -> dict[str, Any]:
    tls = None if entry.tls is None else {"cert": entry.tls.cert, "key": entry.tls.key}
    return {
        "name": name,
        "address": f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}",
        "protocol": "http" if tls is None else "https",
        "mode": mode,
        "tls": tls,
    }
