"""A control plane of its own for a measure: real processes, mutual TLS, a SQLite store full of running actors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from atenet.ateapi import records
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.sqlite import SqliteStore
from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb

__all__ = ["WarmControlPlane", "build_load", "load", "warm_control_plane"]

ROOT = Path(__file__).resolve().parent.parent
_ATESPACE = "bench"
_BATCH = 10_000
_WARM_UP_SECONDS = 1.0
_START_SECONDS = 60.0


@dataclass(frozen=True)
class WarmControlPlane:
    """`actors`: `a0` and so on of one atespace, all RUNNING."""

    address: str
    process: psutil.Process  # ateapi; its front is a child of it
    identity: LocalIdentity
    actors: int


@contextlib.contextmanager
def warm_control_plane(
    root: Path, actors: int, *, front: str = "auto"
) -> Iterator[WarmControlPlane]:
    """Runs while the block lasts; its files are below `root`."""
    root.mkdir(exist_ok=True)
    identity = LocalIdentity(root / "state")
    identity.ensure()
    store, ready = root / "ate.db", root / f"ready-{front}.json"
    ready.unlink(missing_ok=True)  # an earlier run's
    if not store.exists():
        asyncio.run(_fill(store, actors))
    flags = {
        "listen": "127.0.0.1:0",
        "store": store,
        "front": front,
        "snapshots": root / "snapshots",
        "server-credential": identity.service_credential("ateapi", [spiffe.API_SERVER_NAME]),
        "client-credential": identity.credential("ateapi", spiffe.API_ID),
        "client-roots": identity.trust("pod-identity"),
        "node-roots": identity.trust("pod-identity"),
        "ready-file": ready,
    }
    words = [word for flag, value in flags.items() for word in (f"--{flag}", str(value))]
    program = Path(sys.executable).with_name("ateapi")
    process = subprocess.Popen([str(program), "serve", *words], stderr=subprocess.DEVNULL)
    try:
        address = _address(process, ready)
        yield WarmControlPlane(address, psutil.Process(process.pid), identity, actors)
    finally:
        process.terminate()
        process.wait(30)


def build_load() -> Path:
    """The load generator, built if need be."""
    tool = str(ROOT / "tools" / "toolchain.py")
    command = [sys.executable, tool, "build", "--release", "-q"]
    subprocess.run([*command, "-p", "atenet-load"], check=True, cwd=ROOT)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "atenet-load"


def load(
    program: Path, plane: WarmControlPlane, *, callers: int, connections: int, seconds: float
) -> dict[str, float]:
    """Callers that resume running actors, picked at random: {calls_per_second, p50_ms, p99_ms, …}.

    `load_cpu_seconds` is what the load generator itself used; `user_us` and `system_us` are
    microseconds of processor time a call in the control plane, its front included.
    """
    plan = {
        "address": plane.address,
        "server_name": spiffe.API_SERVER_NAME,
        "credential": str(plane.identity.credential("atenet-router", spiffe.ROUTER_ID)),
        "roots": str(plane.identity.trust("service-dns")),
        "callers": callers,
        "connections": connections,
        "warm_up_seconds": _WARM_UP_SECONDS,
        "seconds": seconds,
        "atespace": _ATESPACE,
        "actors": plane.actors,
    }
    before, spent_before = os.times(), _spent(plane.process)
    done = subprocess.run(
        [str(program), json.dumps(plan)], stdout=subprocess.PIPE, check=True, text=True
    )
    after, spent_after = os.times(), _spent(plane.process)
    own = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    result: dict[str, float] = json.loads(done.stdout)
    # Calls while it warmed up were made at about the same rate.
    calls = result["calls_per_second"] * (seconds + _WARM_UP_SECONDS)
    user, system = (
        round((late - early) / calls * 1e6, 1)
        for early, late in zip(spent_before, spent_after, strict=True)
    )
    return {**result, "load_cpu_seconds": round(own, 2), "user_us": user, "system_us": system}


def _spent(process: psutil.Process) -> tuple[float, float]:
    """Seconds of user and system time, children included."""
    times = [p.cpu_times() for p in (process, *process.children(recursive=True))]
    return sum(t.user for t in times), sum(t.system for t in times)


async def _fill(path: Path, actors: int) -> None:
    store = await SqliteStore.open(path)
    for first in range(0, actors, _BATCH):
        await store.write(_running(range(first, min(actors, first + _BATCH))))
    await store.close()


def _running(numbers: range) -> Callable[[Transaction], None]:
    worker = pb.Worker(
        metadata=pb.ResourceMetadata(name="w"),
        worker_namespace="default",
        worker_pool="local",
        worker_pod="w",
        node_name="local",
        ips=["127.1.0.1"],
        epoch=1,
    )

    def change(tx: Transaction) -> None:
        for number in numbers:
            made = pb.Actor(
                metadata=pb.ResourceMetadata(atespace=_ATESPACE, name=f"a{number}"),
                actor_template=pb.ObjectRef(atespace=_ATESPACE, name="template"),
                status=pb.ActorStatus(
                    state=pb.ACTOR_STATE_RUNNING,
                    worker_assignment=records.assignment_for(worker),
                    assigned_node="local",
                ),
            )
            records.created(made.metadata, time.time())
            tx.actors.put(made)

    return change


def _address(process: subprocess.Popen[bytes], ready: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"ateapi did not start (exit code {process.returncode})")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    address: str = json.loads(ready.read_text())["grpc"]
    return address
