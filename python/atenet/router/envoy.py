"""Envoy beside us: started here, or somewhere else by somebody else."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from atenet.address import Address
from atenet.errors import AteError
from atenet.router.admin import EnvoyAdmin
from atenet.router.binary import find_envoy
from atenet.router.bootstrap import bootstrap
from atenet.router.envoy_settings import PRESSURE_FILE, EnvoySettings
from atenet.router.overload import set_pressure
from atenet.router.process import EnvoyProcess
from atenet.router.traffic import Measure, Traffic
from atenet.router.xds import XdsServer

__all__ = ["Envoy", "envoy_beside"]

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0
_POLL_SECONDS = 0.05


class Envoy:
    """What carries the requests."""

    def __init__(
        self,
        admin: EnvoyAdmin,
        process: EnvoyProcess | None,
        pressure: Path | None,
        measure: Measure,
    ) -> None:
        self.admin = admin
        self.process = process
        self._pressure = pressure
        self._measure = measure

    def traffic(self) -> Traffic:
        """Raises AteError when Envoy does not answer."""
        return self._measure(self.admin)

    async def serving(self, xds: XdsServer) -> None:
        """Returns when it has its configuration and serves. Raises AteError with its own words if it refuses."""
        await xds.accepted()
        # Envoy tells nobody when it begins to serve: it can only be asked.
        while not await asyncio.to_thread(self.admin.is_live):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)

    async def ended(self) -> AteError:
        """Returns when an Envoy of ours ends; never for another's."""
        if self.process is None:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")
        return await self.process.ended()

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.stop()

    # What the drain needs.

    def begin(self) -> None:
        if self._pressure is not None:
            set_pressure(self._pressure, 1.0)
        self.admin.post("/healthcheck/fail")
        self.admin.post("/drain_listeners?graceful&skip_exit")

    def requests(self) -> int:
        return self.traffic().requests


@asynccontextmanager
async def envoy_beside(
    settings: EnvoySettings, xds_port: int, measure: Measure
) -> AsyncIterator[Envoy]:
    """Starts Envoy if the settings say so; what was started is stopped at the end. Raises AteError."""
    if not settings.run_envoy:
        _log.info(
            "waiting for an envoy",
            extra={"xds": f"127.0.0.1:{xds_port}", "admin": settings.envoy_admin_address},
        )
        pressure = settings.pressure_file
        if pressure is not None:
            set_pressure(pressure, 0.0)
        yield Envoy(EnvoyAdmin(settings.envoy_admin_address), None, pressure, measure)
        return
    with _directory(settings.state_dir) as directory:
        pressure = Path(directory) / PRESSURE_FILE
        set_pressure(pressure, 0.0)
        process = await EnvoyProcess.start(
            find_envoy(settings.envoy_binary),
            bootstrap(settings, xds_port=xds_port, pressure=pressure),
            Path(directory),
            concurrency=settings.envoy_concurrency,
            drain_seconds=settings.drain_limit,
            log_level=settings.log_level,
        )
        try:
            yield Envoy(EnvoyAdmin(await _or_end(process)), process, pressure, measure)
        finally:
            await process.stop()


async def _or_end(process: EnvoyProcess) -> Address:
    """Its admin address, or its end's error."""
    ended = asyncio.create_task(process.ended())
    found = asyncio.create_task(process.admin_address())
    try:
        done, _ = await asyncio.wait(
            {ended, found}, return_when=asyncio.FIRST_COMPLETED, timeout=_START_SECONDS
        )
    finally:
        for task in (ended, found):
            task.cancel()
    if found in done:
        return found.result()
    raise ended.result() if ended in done else AteError("Envoy's admin API did not come up")


def _directory(given: Path | None) -> AbstractContextManager[str | Path]:
    if given is None:
        return tempfile.TemporaryDirectory(prefix="atenet-router-")
    given.mkdir(parents=True, exist_ok=True)
    return nullcontext(given)
