"""The native router as a process: start, serve, drain, stop."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet._engine import EngineError, Router, log_to_stderr
from atenet.agentgateway.load import ConfigFileError, load
from atenet.agentgateway.model import unused_keys
from atenet.agentgateway.model.both import ConfigFile
from atenet.agentgateway.options import Options
from atenet.agentgateway.settings import Settings
from atenet.agentgateway.translate import router_config
from atenet.agentgateway.untranslatable import Untranslatable
from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError

__all__ = ["Plan", "plan", "run"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """A checked file. `engine`: RouterConfig as JSON; `unused`: its keys that have no effect here."""

    engine: str
    unused: tuple[str, ...]
    log_level: str


def plan(file: Path, settings: Settings) -> Plan:
    """Reads and checks the file. Raises AteError that names file, line and key."""
    config = load(file)
    options = Options(
        settings.bind_address or _every_address(config),
        access_log=settings.access_log,
        limits=settings,
    )
    try:
        engine = json.dumps(router_config(config, options))
    except Untranslatable as error:
        raise ConfigFileError.at(file, error.problem) from None
    try:
        Router(engine)
    except ValueError as error:
        hint = "the path names the engine's field; the file has it under a similar key"
        raise AteError(f"{file}: {error}", hint=hint) from error
    level = settings.log_level or config.config.logging.level or "info"
    return Plan(engine, tuple(unused_keys(config)), level)


async def run(plan: Plan, settings: Settings, stop: Stop) -> None:
    """Serves until `stop`, then drains; a second signal ends it at once. Raises AteError."""
    log_to_stderr("agentgateway", plan.log_level)
    if plan.unused:
        _log.warning("keys of the file without effect here", extra={"keys": plan.unused})
    router = Router(plan.engine)
    try:
        addresses = await asyncio.to_thread(router.start)
    except EngineError as error:
        hint = "free the address, or correct the file it names"
        raise AteError(str(error), hint=hint) from error
    try:
        with _denials(settings, router) as denials:
            announce_ready(settings.ready_file, _ready(addresses) | _named("denials", denials))
            await stop.wait()
            await _drain(router)
    finally:
        await asyncio.to_thread(router.close)


def _denials(settings: Settings, router: Router) -> AbstractContextManager[str | None]:
    if settings.denials_listen is None:
        return nullcontext()
    from atenet.denials.server import serving_denials  # no code in memory that nobody asked for

    return serving_denials(settings, router.denials)


async def _drain(router: Router) -> None:
    again = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, again.set)
    drained = asyncio.create_task(asyncio.to_thread(router.drain))
    hurried = asyncio.create_task(again.wait())
    await asyncio.wait({drained, hurried}, return_when=asyncio.FIRST_COMPLETED)
    if not drained.done():
        _log.warning("second signal: resetting what is left")
        await asyncio.to_thread(router.close)
    hurried.cancel()
    await drained


def _ready(addresses: dict[str, list[str]]) -> dict[str, Any]:
    """`{"listeners": {name: [address, ...]}, "stats": address, "readiness": address}`."""
    listeners = dict(addresses)
    probes = {name: listeners.pop(name)[0] for name in ("stats", "readiness")}
    return {"listeners": listeners, **probes}


def _named(name: str, address: str | None) -> dict[str, str]:
    return {} if address is None else {name: address}


def _every_address(config: ConfigFile) -> str:
    return "::" if config.config.enable_ipv6 and _has_ipv6() else "0.0.0.0"  # noqa: S104 - a gateway


def _has_ipv6() -> bool:
    """Whether this machine can listen on [::]; containers often cannot."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True
