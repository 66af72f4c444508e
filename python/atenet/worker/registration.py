"""Tells the node agent that this worker is here, what it holds, and that it still lives."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio

from atenet.proto import ateapi_pb2, atelet_pb2, atelet_pb2_grpc
from atenet.worker.supervisor import Supervisor

__all__ = ["Registration", "new_epoch"]

_log = logging.getLogger(__name__)
_BEAT_SECONDS = 2.0
_RETRY_SECONDS = 0.25
_CALL_SECONDS = 5.0


def new_epoch(state_dir: Path) -> int:
    """Greater than that of any earlier start of this worker, even when the clock went back."""
    file = state_dir / "epoch"
    try:
        last = int(file.read_text())
    except (FileNotFoundError, ValueError):
        last = 0
    epoch = max(time.time_ns(), last + 1)
    partial = file.with_suffix(".partial")
    partial.write_text(str(epoch))
    partial.replace(file)
    return epoch


class Registration:
    """`worker` is what the control plane learns; the agent fills in the node's part. `capacity`:
    what actors may ask for besides slots, by the names of WorkerResources."""

    def __init__(
        self,
        agent: Path,
        worker: ateapi_pb2.Worker,
        socket: Path,
        supervisor: Supervisor,
        *,
        capacity: Mapping[str, int],
    ) -> None:
        options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.min_reconnect_backoff_ms", 100)]
        self._channel = grpc.aio.insecure_channel(f"unix:{agent}", options=options)
        self._stub = atelet_pb2_grpc.WorkerSupportStub(self._channel)
        self._reached: bool | None = None
        self._worker = worker
        self._socket = socket
        self._supervisor = supervisor
        self._capacity = dict(capacity)
        self._due = asyncio.Event()
        self.accepted = asyncio.Event()

    def beat_now(self) -> None:
        """Something changed that the control plane should not learn two seconds late."""
        self._due.set()

    async def run(self) -> None:
        """Registers, then beats until cancelled. A lost agent is looked for again and again."""
        while True:
            self._due.clear()
            reached = await self.beat()
            with suppress(TimeoutError):
                pause = _BEAT_SECONDS if reached else _RETRY_SECONDS
                async with asyncio.timeout(pause):
                    await self._due.wait()

    async def beat(self) -> bool:
        """One registration; whether the agent took it. Says so in the log when that changes."""
        try:
            request = await self._request()
            await self._stub.RegisterWorker(request, timeout=_CALL_SECONDS)
        except grpc.aio.AioRpcError as e:
            if self._reached is not False:
                _log.warning(
                    "cannot register with the node agent, trying on",
                    extra={"code": e.code().name, "error": e.details()},
                )
            self._reached = False
            return False
        if not self._reached:
            _log.info("registered with the node agent")
        self._reached = True
        self.accepted.set()
        return True

    async def close(self) -> None:
        await self._channel.close(None)

    async def _request(self) -> atelet_pb2.RegisterWorkerRequest:
        worker = ateapi_pb2.Worker()
        worker.CopyFrom(self._worker)
        draining = self._supervisor.draining
        worker.status.state = (
            ateapi_pb2.WORKER_STATE_DRAINING if draining else ateapi_pb2.WORKER_STATE_ACTIVE
        )
        return atelet_pb2.RegisterWorkerRequest(
            worker=worker,
            capacity=ateapi_pb2.WorkerResources(
                actors=self._supervisor.slots, resources=self._capacity
            ),
            hosted_actor_uids=self._supervisor.hosted(),
            socket_path=str(self._socket),
            activity=[
                ateapi_pb2.ActorActivity(actor_uid=a.uid, busy=a.busy, idle_ms=a.idle_ms)
                for a in await self._supervisor.activity()
            ],
        )
