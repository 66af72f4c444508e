"""Envoy's overload manager: a limit of connections, and the lever by which a drain reaches idle connections.

Envoy's own drain only speaks to a connection when it answers a request on it. Timers that the overload manager may
shorten reach every connection: the drain raises a made-up pressure in a file that Envoy watches, whereupon idle
connections run into their idle limit and busy ones into their (otherwise endless) lifetime, which says GOAWAY.
"""

from __future__ import annotations

from pathlib import Path

from atenet.router.resources.names import Resource, type_url

__all__ = ["overload_manager", "set_pressure"]

_SHORTENED = "0.1s"

_CONNECTIONS = "envoy.resource_monitors.global_downstream_max_connections"
_PRESSURE = "envoy.resource_monitors.injected_resource"
_MONITORS = "envoy.extensions.resource_monitors"
_SCALE = "envoy.config.overload.v3.ScaleTimersOverloadActionConfig"


def overload_manager(max_connections: int, pressure: Path | None) -> Resource:
    """`pressure`: the file; None: drains do not reach idle connections."""
    monitors = [
        {
            "name": _CONNECTIONS,
            "typed_config": {
                "@type": type_url(
                    f"{_MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig"
                ),
                "max_active_downstream_connections": max_connections,
            },
        }
    ]
    if pressure is None:
        return {"resource_monitors": monitors}
    injected = {
        "@type": type_url(f"{_MONITORS}.injected_resource.v3.InjectedResourceConfig"),
        "filename": str(pressure),
    }
    return {
        "refresh_interval": "0.1s",
        "resource_monitors": [*monitors, {"name": _PRESSURE, "typed_config": injected}],
        "actions": [_shorten()],
    }


def set_pressure(file: Path, value: float) -> None:
    """Replaces the file by rename, which is what Envoy watches for."""
    partial = file.with_name(f"{file.name}.partial")
    partial.write_text(f"{value}\n")
    partial.replace(file)


def _shorten() -> Resource:
    timers = ("HTTP_DOWNSTREAM_CONNECTION_IDLE", "HTTP_DOWNSTREAM_CONNECTION_MAX")
    factors = [{"timer": timer, "min_timeout": _SHORTENED} for timer in timers]
    return {
        "name": "envoy.overload_actions.reduce_timeouts",
        "triggers": [{"name": _PRESSURE, "threshold": {"value": 0.5}}],
        "typed_config": {"@type": type_url(_SCALE), "timer_scale_factors": factors},
    }
