"""Control planes on one database that are killed again and again while fifty callers resume.

`python -m tests.support.replica_storm --seconds 120 --kill-every 10` is the long form of what the
suite runs briefly: it prints what happened as JSON, and fails if the books are wrong at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from atenet.ateapi.store.location import PostgresUrl
from atenet.ateapi.store.postgres.lease import LEASE_SECONDS
from atenet.ateapi.store.postgres.schema import migrate
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import ControlPlane, control_plane, resume, suspend
from tests.support.eventually import eventually, within
from tests.support.postgres import PostgresServer, postgres_server

# What routers retry, and for how long and how often by default (ParkingConfig).
RETRIED = {"UNAVAILABLE", "ABORTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"}
BUDGET_SECONDS = 5.0
_RETRY_SECONDS = 0.1
_CALLERS = 50
_WORKERS = {"worker-1": 20, "worker-2": 30}  # a slot each: one that leaks is missed


@dataclass
class Report:
    resumes: int = 0
    kills: int = 0
    lost: list[str] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)
    longest_seconds: float = 0.0


class Storm:
    def __init__(self, planes: list[ControlPlane], budget: float) -> None:
        self.planes = planes
        self._budget = budget
        self.report = Report()
        self._stubs: dict[int, Any] = {}
        self._over = asyncio.Event()

    async def run(self, seconds: float, kill_every: float) -> Report:
        """Until the time is up; then everything is put to rest."""
        async with contextlib.AsyncExitStack() as stack:
            for plane in self.planes:
                await stack.enter_async_context(_serving(plane))
            await self.planes[0].seed(*(f"a{i}" for i in range(_CALLERS)))
            beating = asyncio.create_task(self._beat())
            await asyncio.gather(*(self._until_ok(self._register(w)) for w in _WORKERS))
            callers = [asyncio.create_task(self._caller(f"a{i}")) for i in range(_CALLERS)]
            killing = asyncio.create_task(self._kill(kill_every, stack))
            await asyncio.sleep(seconds)
            self._over.set()
            await killing
            await asyncio.gather(*callers)
            await self._books_are_right()
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        return self.report

    async def _caller(self, name: str) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            last = await self._insisted(
                lambda stub: stub.ResumeActor(resume(name), timeout=5), self._budget
            )
            took = time.monotonic() - began
            self.report.resumes += 1
            self.report.longest_seconds = max(self.report.longest_seconds, took)
            if last != "OK":
                self.report.lost.append(f"{name}: {last} after {took:.1f} s")
            # Nobody waits for a suspend: it is made until it is done.
            await self._until_ok(lambda stub: stub.SuspendActor(suspend(name), timeout=5))

    async def _insisted(self, call: Any, budget: float) -> str:
        """The last code: OK, one that is final, or what was still so when the budget ended."""
        deadline = time.monotonic() + budget
        while True:
            code = await self._once(call)
            if code == "OK" or code not in RETRIED or time.monotonic() > deadline:
                return code
            self.report.retries[code] += 1
            await asyncio.sleep(_RETRY_SECONDS)

    async def _once(self, call: Any) -> str:
        index = random.randrange(len(self.planes))
        try:
            await call(self._control(index))
        except grpc.aio.AioRpcError as e:
            return e.code().name
        return "OK"

    async def _until_ok(self, call: Any) -> None:
        code = await self._insisted(call, budget=60)
        assert code == "OK", code

    def _control(self, index: int) -> Any:
        """A router's stub and the agent's are one here: both are the owner's to call."""
        plane = self.planes[index]
        known = self._stubs.get(index)
        if known is None or known[0] != plane.addresses["grpc"]:
            known = self._stubs[index] = (plane.addresses["grpc"], plane.control())
        return known[1]

    def _register(self, name: str) -> Any:
        async def register(_stub: Any) -> None:
            plane = random.choice(self.planes)
            request = plane.registration(name, slots=_WORKERS[name])
            await plane.worker_service().RegisterWorker(request, timeout=5)

        return register

    async def _beat(self) -> None:
        while True:
            for name in _WORKERS:
                await self._once(self._register(name))
            await asyncio.sleep(0.5)

    async def _kill(self, every: float, stack: contextlib.AsyncExitStack) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await within(self._over.wait(), every)
                return
            plane = self.planes[self.report.kills % len(self.planes)]
            plane.kill()
            self.report.kills += 1
            await plane.killed()
            await stack.enter_async_context(_serving(plane))

    async def _books_are_right(self) -> None:
        """All actors asleep, all slots free, and the node hosts nothing."""
        control = self.planes[0].control()
        listed = (await control.ListActors(pb.ListActorsRequest(page_size=1000))).actors
        states = {pb.ActorState.Name(a.status.state) for a in listed}
        assert states == {"ACTOR_STATE_SUSPENDED"}, states
        workers = (await control.ListWorkers(pb.ListWorkersRequest())).workers
        allocated = {w.metadata.name: w.status.allocated.actors for w in workers}
        assert allocated == dict.fromkeys(_WORKERS, 0), "slots leaked"
        hosted = self.planes[0].atelet.hosted
        await eventually(lambda: not any(hosted.values()))


@contextlib.asynccontextmanager
async def _serving(plane: ControlPlane) -> AsyncIterator[None]:
    async with plane.in_its_own_process():
        yield


async def storm(
    root: Path,
    server: PostgresServer,
    seconds: float,
    kill_every: float,
    budget: float = BUDGET_SECONDS,
) -> Report:
    """`budget`: seconds for which a resume is tried again before it counts as lost."""
    url = server.database()
    migrate(PostgresUrl(url))
    async with control_plane(root, store=url, store_lease=LEASE_SECONDS) as plane:
        plane.identity.credential("atelet", spiffe.ATELET_ID)
        planes = [plane.replica("one"), plane.replica("two")]
        return await Storm(planes, budget).run(seconds, kill_every)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kill-every", type=float, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, postgres_server() as server:
        report = asyncio.run(storm(Path(root), server, given.seconds, given.kill_every))
    sys.stdout.write(json.dumps(report.__dict__) + "\n")
    return 1 if report.lost else 0


if __name__ == "__main__":
    sys.exit(main())
