"""The process beside Envoy, whichever direction it serves: from its start to its drain, and its pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import platform
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

from atenet import __version__
from atenet._engine import ExtProc, log_to_stderr
from atenet.address import Address
from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError
from atenet.pages import Page, PageServer, Query
from atenet.router import drain, metrics, statusz
from atenet.router.control_check import Ask, ControlCheck
from atenet.router.envoy import Envoy, envoy_beside
from atenet.router.envoy_settings import EnvoySettings
from atenet.router.health import Health
from atenet.router.resources import Snapshot
from atenet.router.traffic import Measure
from atenet.router.xds import XdsServer

__all__ = ["Show", "prepare", "serve"]

_log = logging.getLogger(__name__)

_HEALTH_SECONDS = 1.0
# What is still being decided when Envoy is gone has nobody to answer.
_LEFTOVER_SECONDS = 1.0

# What the status page shows of the decision service's own status.
Show = Callable[[dict[str, Any]], dict[str, Any]]


async def serve(
    settings: EnvoySettings,
    stop: Stop,
    *,
    decisions: tuple[ExtProc, str],
    snapshot: Snapshot,
    measure: Measure,
    show: Show,
    ask: Ask,
    beside: AbstractContextManager[Mapping[str, str]] | None = None,
) -> None:
    """Serves until `stop`, then drains; a second signal ends it at once. Raises AteError.

    `decisions`: the running service, which is closed here, and where it listens. `ask`: how it is
    seen whether the control plane answers. `beside`: further servers of this process, with their
    addresses.
    """
    xds = XdsServer(snapshot)
    service, asked_at = decisions
    try:
        xds_port = await xds.start(settings.port_xds)
        async with (
            envoy_beside(settings, xds_port, measure) as envoy,
            ControlCheck(settings, ask) as control,
        ):
            router = Router(settings, service, xds, envoy, control, show)
            own = {"xds": f"127.0.0.1:{xds_port}", "extproc": asked_at}
            with beside or contextlib.nullcontext({}) as more:
                await router.serve(stop, {**own, **more})
    finally:
        await xds.close()
        await asyncio.to_thread(service.close, _LEFTOVER_SECONDS)


def prepare(settings: EnvoySettings) -> None:
    """What comes before anything is started. Raises AteError naming the flag of a file that cannot be read."""
    log_to_stderr("router", settings.log_level)
    drain.clear_marker(settings.drain_complete_file)
    for name, path in settings.files.items():
        try:
            path.read_bytes()
        except OSError as error:
            raise AteError(
                f"--{name.replace('_', '-')}: cannot read {path}: {error.strerror}"
            ) from error


class Router:
    """The parts of a running router, and what the pages say of them."""

    def __init__(
        self,
        settings: EnvoySettings,
        decisions: ExtProc,
        xds: XdsServer,
        envoy: Envoy,
        control: ControlCheck,
        show: Show,
    ) -> None:
        self._settings = settings
        self._show = show
        self._decisions = decisions
        self._xds = xds
        self._envoy = envoy
        self._state = "starting"
        looks = {"envoy": self._look_at_envoy, "control-plane": control.look}
        self._health = Health(looks, interval=_HEALTH_SECONDS)

    async def serve(self, stop: Stop, addresses: dict[str, Any]) -> None:
        settings = self._settings
        probes = {
            "/readyz": self._readyz,
            "/healthz": lambda _: Page("ok\n"),
            "/metrics": self._metrics,
        }
        with (
            PageServer(
                "--metrics-listen-addr", settings.metrics_listen_addr, probes
            ) as metrics_pages,
            PageServer(
                "--status-port",
                Address("127.0.0.1", settings.status_port),
                {"/statusz": self._statusz},
            ) as page,
        ):
            addresses |= {
                "stats": str(metrics_pages.address),
                "readiness": str(metrics_pages.address),
            }
            addresses |= {
                "status": str(page.address),
                "envoy_admin": str(self._envoy.admin.address),
            }
            if not await self._until(self._envoy.serving(self._xds), stop):
                return
            addresses["listeners"] = await asyncio.to_thread(self._envoy.admin.listeners)
            addresses["envoy_pid"] = self._envoy.process.pid if self._envoy.process else None
            watching = asyncio.create_task(self._health.run())
            try:
                await self._health.look("envoy")
                self._state = "serving"
                announce_ready(settings.ready_file, addresses)
                if await self._until(stop.wait(), None):
                    await self._drain()
            finally:
                watching.cancel()

    async def _until(self, work: Any, stop: Stop | None) -> bool:
        """Waits for `work`. False: told to stop before. Raises AteError when Envoy ends meanwhile."""
        working, ended = asyncio.ensure_future(work), asyncio.create_task(self._envoy.ended())
        stopped = asyncio.create_task(stop.wait()) if stop else None
        tasks = {task for task in (working, ended, stopped) if task is not None}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return True
            if ended.done():
                raise ended.result()
            return False
        finally:
            for task in tasks:
                task.cancel()

    async def _drain(self) -> None:
        hurry = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, hurry.set)
        empty = await drain.drain(
            self._envoy,
            delay=self._settings.drain_delay,
            limit=self._settings.drain_limit,
            hurry=hurry,
            not_ready=self._not_ready,
        )
        drain.set_marker(self._settings.drain_complete_file)
        _log.info("drained", extra={"empty": empty})

    def _not_ready(self) -> None:
        self._state = "draining"

    async def _look_at_envoy(self) -> str | None:
        live = await asyncio.to_thread(self._envoy.admin.is_live)
        return None if live else "its admin API does not say LIVE"

    # The pages; each runs on a thread of its own.

    def _readyz(self, _: Query) -> Page:
        if self._state == "serving" and self._health.checks["envoy"].healthy:
            return Page("ready\n")
        reason = "envoy does not serve" if self._state == "serving" else self._state
        return Page(f"not ready: {reason}\n", "503 Service Unavailable")

    def _metrics(self, _: Query) -> Page:
        traffic = None
        with contextlib.suppress(AteError):
            traffic = self._envoy.traffic().metrics
        return Page(
            metrics.merge(self._decisions.metrics(), traffic), content_type=metrics.CONTENT_TYPE
        )

    def _statusz(self, query: Query) -> Page:
        decided = json.loads(self._decisions.status())
        status = {
            "build": {
                "atenet": __version__,
                "python": platform.python_version(),
                "xds": self._xds.version,
            },
            "state": self._state,
            **self._show(decided),
            "health": self._health.describe(),
            "flags": _shown(self._settings),
            "requests": decided["requests"],
        }
        return statusz.render(query, status)


def _shown(settings: EnvoySettings) -> dict[str, Any]:
    """Every flag as it stands; none of them holds a secret, only paths of files that do."""
    values = {name: getattr(settings, name) for name in asdict(settings)}
    return {
        f"--{name.replace('_', '-')}": value
        if value is None or isinstance(value, int | float | tuple)
        else str(value)
        for name, value in values.items()
    }
