"""The control plane's records of workers, as ate-controller may see and change them.

A record is made by its worker's own registration, which alone knows the epoch, the addresses and that
the worker lives. One that was made before would be claimed before anybody could take the actor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import grpc
import grpc.aio

from atenet.controller.views import WorkerView
from atenet.proto import ateapi_pb2 as pb
from atenet.proto.ateapi_pb2_grpc import ControlStub
from atenet.rpc import mtls_channel

__all__ = ["UNANSWERED", "Records", "record_view"]

UNANSWERED = (grpc.aio.AioRpcError,)
_CALL_SECONDS = 5.0
_PAGE = 500
_PARALLEL = 16


class Records:
    """Asks over mutual TLS. `close` it."""

    def __init__(self, api: str, *, credential: Path, roots: Path, server_name: str) -> None:
        self._channel = mtls_channel(
            api, credential=credential, roots=roots, server_name=server_name
        )
        self._stub = ControlStub(self._channel)
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def close(self) -> None:
        await self._channel.close()

    async def get(self, name: str) -> WorkerView | None:
        """None: there is no such worker. Raises AioRpcError."""
        async with self._slots:
            try:
                found = await self._stub.GetWorker(
                    pb.GetWorkerRequest(worker=pb.ObjectRef(name=name)), timeout=_CALL_SECONDS
                )
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return None
                raise
        return record_view(found)

    async def look(self, names: Iterable[str]) -> dict[str, WorkerView | None]:
        """Those that could be asked for; an answer that does not come is left out."""
        wanted = list(names)
        answers = await asyncio.gather(*map(self.get, wanted), return_exceptions=True)
        found: dict[str, WorkerView | None] = {}
        for name, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, BaseException):
                if not isinstance(answer, UNANSWERED):
                    raise answer
            else:
                found[name] = answer
        return found

    async def drain(self, name: str) -> None:
        """No actor comes to it any more, and those that are there leave. Raises AioRpcError."""
        request = pb.DrainWorkerRequest(worker=pb.ObjectRef(name=name))
        try:
            await self._stub.DrainWorker(request, timeout=_CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise

    async def undrain(self, name: str) -> None:
        """It takes actors again. Raises AioRpcError: Aborted when it changed meanwhile."""
        found = await self.get(name)
        if found is None or not found.draining:
            return
        worker = pb.Worker(
            metadata=pb.ResourceMetadata(name=name, uid=found.uid, version=found.version),
            status=pb.WorkerStatus(state=pb.WORKER_STATE_ACTIVE),
        )
        await self._stub.UpdateWorker(pb.UpdateWorkerRequest(worker=worker), timeout=_CALL_SECONDS)

    async def forget(self, name: str, uid: str) -> None:
        """Removes the record of one that is gone. Raises AioRpcError: FailedPrecondition while
        actors are still claimed on it."""
        request = pb.DeleteWorkerRequest(
            worker=pb.ObjectRef(name=name), options=pb.DeleteOptions(uid=uid)
        )
        try:
            await self._stub.DeleteWorker(request, timeout=_CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise

    async def all(self) -> AsyncIterator[pb.Worker]:
        """Page by page. Raises AioRpcError."""
        token = ""
        while True:
            request = pb.ListWorkersRequest(page_size=_PAGE, page_token=token)
            page = await self._stub.ListWorkers(request, timeout=_CALL_SECONDS)
            for worker in page.workers:
                yield worker
            token = page.next_page_token
            if not token:
                return


def record_view(worker: pb.Worker) -> WorkerView:
    return WorkerView(
        actors=worker.status.allocated.actors,
        draining=worker.status.state == pb.WORKER_STATE_DRAINING,
        uid=worker.metadata.uid,
        version=worker.metadata.version,
        pod_uid=worker.worker_pod_uid,
    )
