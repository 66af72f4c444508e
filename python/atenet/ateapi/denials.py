"""Whom the control plane asks for recent denials: every egress gateway behind one name, and every worker."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atenet.address import Address
from atenet.client.request import ClientTls
from atenet.denials.client import fetch_denials
from atenet.denials.denial import Denial
from atenet.denials.merged import merged
from atenet.errors import AteError
from atenet.identity.spiffe import EGRESS_SERVER_NAME, pod_dns_name, pod_id
from atenet.proto import ateapi_pb2 as pb

__all__ = ["DenialSources", "Denials", "Found"]

_log = logging.getLogger(__name__)

# One that hangs holds nobody up for long, and all together not longer than a person waits.
_NAME_SECONDS, _ONE_SECONDS, _ALL_SECONDS = 5.0, 3.0, 20.0
_AT_A_TIME = 32
# Far below what fits into one answer.
_MOST = 1000


@dataclass(frozen=True)
class DenialSources:
    """`gateways`: a name of all of them; `roots`: of their certificates; `worker_port`: None, workers are not asked."""

    gateways: Address
    roots: Path
    credential: Path
    worker_port: int | None
    worker_roots: Path


@dataclass(frozen=True)
class Found:
    """`unanswered`: who is missing in it."""

    denials: list[Denial]
    unanswered: list[str]


@dataclass(frozen=True)
class _Source:
    name: str
    address: str
    server_name: str
    context: ssl.SSLContext


class Denials:
    """Asks on threads of its own: nothing else waits for a gateway that hangs."""

    def __init__(self, sources: DenialSources) -> None:
        self._sources = sources
        self._threads = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="denials")

    async def of(self, actor: str, workers: Iterable[pb.Worker]) -> Found:
        """`actor`: `<atespace>/<name>`. Raises AteError: our own certificate is of no use."""
        gateways, unanswered = await self._gateways()
        asked = [*gateways, *self._workers(workers, unanswered)]
        loop = asyncio.get_running_loop()
        calls = {
            loop.run_in_executor(
                self._threads,
                partial(fetch_denials, seconds=_ONE_SECONDS),
                *(source.address, source.server_name, actor, source.context),
            ): source
            for source in asked
        }
        try:
            done, late = (
                await asyncio.wait(calls, timeout=_ALL_SECONDS) if calls else (set(), set())
            )
        finally:
            # Who asked may have left: what was not begun is not begun any more.
            for call in calls:
                call.cancel()
        found: list[Denial] = []
        for call in done:
            error = call.exception()
            if error is None:
                found += call.result()
            else:
                said = {"source": calls[call].name, "error": str(error)}
                _log.warning("denials not told", extra=said)
                unanswered.append(calls[call].name)
        unanswered += [calls[call].name for call in late]
        return Found(merged(found, most=_MOST), sorted(unanswered))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _gateways(self) -> tuple[list[_Source], list[str]]:
        host, port = self._sources.gateways.host, self._sources.gateways.port
        try:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(_NAME_SECONDS):
                answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            _log.warning("no egress gateway found", extra={"gateways": host, "error": str(error)})
            return [], [f"egress gateways ({host})"]
        ips = sorted({str(address[0]) for *_, address in answers})
        context = self._context(self._sources.roots)
        found = [
            _Source(f"egress gateway {ip}", str(Address(ip, port)), EGRESS_SERVER_NAME, context)
            for ip in ips
        ]
        return found, []

    def _workers(self, workers: Iterable[pb.Worker], unanswered: list[str]) -> Iterator[_Source]:
        port = self._sources.worker_port
        if port is None:
            return
        context = self._context(self._sources.worker_roots)
        for worker in workers:
            name = f"worker {worker.metadata.name}"
            if not worker.ips:
                continue
            try:
                spiffe_id = worker.spiffe_id or pod_id(worker.worker_namespace, worker.worker_pool)
                server_name = pod_dns_name(spiffe_id)
            except AteError as error:
                # One record that is odd must not hide what all others say.
                _log.warning("denials not told", extra={"source": name, "error": error.message})
                unanswered.append(name)
                continue
            yield _Source(name, str(Address(worker.ips[0], port)), server_name, context)

    def _context(self, roots: Path) -> ssl.SSLContext:
        # Read anew each time: certificates live for hours.
        return ClientTls(roots=roots, credential=self._sources.credential).context()
