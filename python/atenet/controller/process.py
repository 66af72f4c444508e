"""One replica of the controller: put together, served, stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import httpx2
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import ConfigError
from prometheus_client import CONTENT_TYPE_LATEST

from atenet.controller.leadership import Leadership
from atenet.controller.metrics import Metrics
from atenet.controller.records import Records
from atenet.controller.running import WorkerPools
from atenet.controller.settings import ControllerSettings
from atenet.controller.signing.run import run_signing
from atenet.controller.signing.settings import SigningSettings
from atenet.controller.worker_pod import PodSettings
from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError
from atenet.pages import Page, PageServer, Query

__all__ = ["serve"]

_log = logging.getLogger(__name__)
_CERTIFICATE_SECONDS = 0.5
_FIELD_MANAGER = "ate-controller"
_REQUEST_SECONDS = 10.0


async def serve(settings: ControllerSettings, stop: Stop) -> None:
    """Leads or waits until `stop` is set. Raises AteError when it cannot start."""
    client = _client(settings.kubeconfig)
    leadership = Leadership(client, settings.namespace, settings.lease_name, settings.replica)
    metrics = Metrics(leadership)
    pages = _pages(metrics, stop)
    try:
        with PageServer("--stats-listen", settings.stats_listen, pages) as stats:
            announce_ready(settings.ready_file, {"stats": str(stats.address)})
            await leadership.run(lambda: _lead(settings, client, leadership, metrics), stop)
    finally:
        await client.close()


async def _lead(
    settings: ControllerSettings, client: AsyncClient, leadership: Leadership, metrics: Metrics
) -> None:
    """All loops of the leader, side by side. Should one end, all do."""
    signing = SigningSettings(
        namespace=settings.namespace,
        pod_certificates=settings.pod_certificates,
        own_credential=settings.credential,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run_signing(client, signing, asyncio.Event()))
            tasks.create_task(_pools(settings, client, leadership, metrics))
    except BaseExceptionGroup as group:
        # What a person can do something about is told as such.
        told = next((one for one in group.exceptions if isinstance(one, AteError)), None)
        raise told or group from None


async def _pools(
    settings: ControllerSettings, client: AsyncClient, leadership: Leadership, metrics: Metrics
) -> None:
    records = await _records(settings)
    pods = PodSettings(
        image=settings.worker_image,
        image_pull_policy=settings.worker_image_pull_policy,
        pod_certificates=settings.pod_certificates,
        log_level=settings.worker_log_level,
    )
    try:
        await WorkerPools(
            client, records, leadership, metrics, pods, settings.watch_namespace
        ).run()
    finally:
        await records.close()


async def _records(settings: ControllerSettings) -> Records:
    """Once there are the certificate, which signing makes first, and the authorities."""
    while True:
        try:
            return Records(
                settings.api,
                credential=settings.credential,
                roots=settings.api_roots,
                server_name=settings.api_server_name,
            )
        except AteError as error:
            _log.info("waiting for certificates", extra={"error": error.message})
        await asyncio.sleep(_CERTIFICATE_SECONDS)


def _client(kubeconfig: Path | None) -> AsyncClient:
    try:
        config = (
            KubeConfig.from_service_account()
            if kubeconfig is None
            else KubeConfig.from_file(kubeconfig)
        )
        return AsyncClient(
            config,
            trust_env=False,
            field_manager=_FIELD_MANAGER,
            timeout=httpx2.Timeout(_REQUEST_SECONDS),
        )
    except (ConfigError, OSError) as error:
        raise AteError(
            f"no cluster to look after: {error}",
            hint="run it as a pod with a service account, or give --kubeconfig",
        ) from error


def _pages(metrics: Metrics, stop: Stop) -> dict[str, Callable[[Query], Page]]:
    def shown(_: Query) -> Page:
        return Page(metrics.text(), content_type=CONTENT_TYPE_LATEST)

    def ready(_: Query) -> Page:
        if stop.is_set():
            return Page("stopping\n", "503 Service Unavailable")
        return Page("leading\n" if metrics.leading else "waiting for the lease\n")

    return {"/metrics": shown, "/readyz": ready, "/healthz": lambda _: Page("alive\n")}
