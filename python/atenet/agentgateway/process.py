"""`atenet agentgateway`: the native router as a process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atenet._engine import EngineError, Router
from atenet.agentgateway.limits import Limits
from atenet.agentgateway.load import ConfigFileError, load
from atenet.agentgateway.model import AgentGatewayConfig, unused_keys
from atenet.agentgateway.source import Source
from atenet.agentgateway.translate import Options, router_config
from atenet.agentgateway.untranslatable import Untranslatable
from atenet.errors import AteError

__all__ = ["engine_config", "serve"]

log = logging.getLogger(__name__)


def engine_config(
    file: Path, *, bind_address: str | None, access_log: bool, limits: Limits
) -> tuple[str, Sequence[str]]:
    """The engine's configuration as JSON, and the keys of the file that have no effect.

    `bind_address`: where to listen when the file names only a port; default: every address.
    Raises AteError, with file, line and key.
    """
    config = load(file)
    options = Options(bind_address or _every_address(config), access_log=access_log, limits=limits)
    try:
        text = json.dumps(router_config(config, options))
    except Untranslatable as error:
        raise _located(file, error) from None
    try:
        Router(text)
    except ValueError as error:
        raise AteError(f"{file}: {error}", hint="the path names the engine's field, not the file's key") from error
    return text, list(unused_keys(config))


def serve(config: str, *, ready_file: Path | None) -> None:
    """Serves until SIGTERM or SIGINT, then drains; a second signal ends it at once. Raises AteError."""
    router = Router(config)
    try:
        addresses = router.start()
    except EngineError as error:
        raise AteError(str(error), hint="free the address, or correct the file it names") from error
    try:
        ready = _ready(addresses)
        log.info("serving", extra=ready)
        if ready_file is not None:
            _write_ready(ready_file, ready)
        asyncio.run(_until_drained(router))
    finally:
        router.close()
        log.info("stopped")


async def _until_drained(router: Router) -> None:
    signals: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number.name)
    log.info("draining", extra={"signal": await signals.get()})
    drained = asyncio.create_task(asyncio.to_thread(router.drain))
    again = asyncio.create_task(signals.get())
    await asyncio.wait({drained, again}, return_when=asyncio.FIRST_COMPLETED)
    if again.done():
        log.warning("second signal: resetting what is left", extra={"signal": again.result()})
        await asyncio.to_thread(router.close)
    again.cancel()
    if not await drained:
        log.warning("some requests were reset")


def _every_address(config: AgentGatewayConfig) -> str:
    return "::" if config.config.enable_ipv6 and _has_ipv6() else "0.0.0.0"  # noqa: S104  # it is a gateway


def _has_ipv6() -> bool:
    """Whether this machine can listen on [::]; containers often cannot."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def _located(file: Path, error: Untranslatable) -> ConfigFileError:
    problem = error.problem
    line = Source(file.read_text(encoding="utf-8")).line(_steps(problem.path))
    return ConfigFileError(str(file), [type(problem)(problem.path, problem.message, line)])


def _steps(path: str) -> list[str | int]:
    parts = path.replace("[", ".[").split(".")
    return [int(part[1:-1]) if part.startswith("[") else part for part in parts]


def _ready(addresses: dict[str, list[str]]) -> dict[str, Any]:
    """`{"listeners": {name: [address, ...]}, "stats": address, "readiness": address}`."""
    listeners = dict(addresses)
    probes = {name: listeners.pop(name)[0] for name in ("stats", "readiness")}
    return {"listeners": listeners, **probes}


def _write_ready(file: Path, ready: dict[str, Any]) -> None:
    """Whole or not at all: a supervisor may look at any moment."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    scratch.write_text(json.dumps(ready), encoding="utf-8")
    scratch.replace(file)
