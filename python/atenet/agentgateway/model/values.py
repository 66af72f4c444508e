"""Scalars of the file: durations, ports, addresses."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

__all__ = ["Duration", "HostPort", "OpenPort", "Port", "Share"]

_UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_PART = r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)"
_DURATION = re.compile(rf"(?:{_PART})+")


def _milliseconds(value: Any) -> int:
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        raise ValueError(f"must be a duration like 5s, 100ms or 1m30s, not {value!r}")
    total = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))
    # What is above zero stays above zero: 0 has meanings of its own.
    return max(round(total), 1 if total else 0)


def _host_port(value: Any) -> str:
    host, _, port = str(value).rpartition(":")
    if not host or any(c.isspace() for c in host) or not port.isascii() or not port.isdigit():
        raise ValueError(f"must be host:port, not {value!r}")
    if int(port) > 65535:
        raise ValueError(f"port {port} is above 65535")
    return str(value)


def _share(value: Any) -> float:
    # AgentGateway takes an expression here; its constants are what a static file needs.
    words = {"true": 1.0, "false": 0.0}
    try:
        share = words.get(str(value).lower(), -1.0)
        share = float(value) if share < 0 else share
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"must be a number from 0 to 1, true or false, not {value!r}")
    return share


# Whole milliseconds.
Duration = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": "string", "examples": ["5s", "100ms", "1m30s"]}),
]
HostPort = Annotated[
    str,
    BeforeValidator(_host_port),
    WithJsonSchema({"type": "string", "examples": ["api.ate-system.svc:443"]}),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    WithJsonSchema({"type": ["number", "boolean", "string"]}),
]
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
# A port to listen on; 0 lets the system choose.
OpenPort = Annotated[int, Field(strict=True, ge=0, le=65535)]
