"""What `ateapi serve` can be told: each flag, variable and default once, with its why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from atenet.ateapi.roles import Role, parse_binding
from atenet.errors import AteError

__all__ = ["DURATION", "Settings", "options"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


class _Duration(click.ParamType[float]):
    """`250ms`, `6s`, `1.5m`, `24h` → seconds."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not a duration such as 250ms, 6s or 2m", param, ctx)
        return float(match.group(1)) * _UNITS[match.group(2)]


class _Binding(click.ParamType[tuple[str, Role]]):
    name = "spiffe-id=role"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, Role]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_binding(value)
        except AteError as e:
            self.fail(str(e), param, ctx)


DURATION = _Duration()


@dataclass(frozen=True)
class Settings:
    """One control plane process. Durations are seconds."""

    listen: str
    store: Path
    snapshots: Path
    server_credential: Path
    client_credential: Path
    client_roots: Path
    node_roots: Path
    actor_ca_cert: Path | None
    actor_ca_key: Path | None
    role: tuple[tuple[str, Role], ...]
    worker_timeout: float
    node_timeout: float
    drain_timeout: float
    stats_listen: str
    ready_file: Path | None
    log_level: str


_FILE = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY = click.Path(path_type=Path, file_okay=False)

_OPTIONS = [
    click.option(
        "--listen",
        default="127.0.0.1:7443",
        show_default=True,
        help="Where to serve gRPC over mutual TLS (port 0: any free one).",
    ),
    click.option("--store", type=_FILE, required=True, help="The SQLite file; made if missing."),
    click.option(
        "--snapshots", type=_DIRECTORY, required=True, help="The directory that holds snapshots."
    ),
    click.option(
        "--server-credential",
        type=_FILE,
        required=True,
        help="Key and chain shown to callers; carries this service's DNS name.",
    ),
    click.option(
        "--client-credential",
        type=_FILE,
        required=True,
        help="Key and chain shown to node agents; carries this process's SPIFFE id.",
    ),
    click.option(
        "--client-roots", type=_FILE, required=True, help="Authorities that callers chain to."
    ),
    click.option(
        "--node-roots", type=_FILE, required=True, help="Authorities that node agents chain to."
    ),
    click.option(
        "--actor-ca-cert", type=_FILE, help="The actor-identity authority, to issue from."
    ),
    click.option("--actor-ca-key", type=_FILE, help="Its key."),
    click.option(
        "--role",
        type=_Binding(),
        multiple=True,
        help="Gives a SPIFFE id a role besides the built-in bindings; may be repeated.",
    ),
    click.option(
        "--worker-timeout",
        type=DURATION,
        default="6s",
        show_default=True,
        help="A worker silent for this long is lost: three heartbeats of 2 s.",
    ),
    click.option(
        "--node-timeout",
        type=DURATION,
        default="60s",
        show_default=True,
        help="A node silent for this long has taken its actors' unsaved files with it.",
    ),
    click.option(
        "--drain-timeout",
        type=DURATION,
        default="20s",
        show_default=True,
        help="How long calls and workflows may take to end after SIGTERM.",
    ),
    click.option(
        "--stats-listen",
        default="127.0.0.1:0",
        show_default=True,
        help="Where to serve /metrics over plain HTTP.",
    ),
    click.option(
        "--ready-file",
        type=_FILE,
        help="Written once serving: JSON of the bound addresses.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="JSON lines on stderr.",
    ),
]


def options(command: Any) -> Any:
    """Decorates a click command with every option of Settings, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
