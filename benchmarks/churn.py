"""Resumes and suspends at a steady rate through one ateapi, with sandboxes in which nothing runs.

`python -m benchmarks.churn` (two minutes) or `--minutes 10`. It starts ateapi, atelet and one worker of the null class,
resumes and suspends actors in turns, and watches memory and open files of the three processes. What it saw goes to
results/churn.json; it fails when a call fails or a slot is left taken at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import secrets
import signal
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.rpc import mtls_channel

from benchmarks.machine import machine, versions
from benchmarks.result import RESULTS
from tests.support.eventually import within

_ACTORS = 200
_SLOTS = 64
_SAMPLE_SECONDS = 5.0
_START_SECONDS = 60.0
_SPACE = "churn"


@dataclass
class Running:
    """One process under watch. Samples: [seconds, KiB resident, open files]."""

    name: str
    process: asyncio.subprocess.Process
    samples: list[tuple[float, int, int]] = field(default_factory=list)

    def sample(self, at: float) -> None:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        resident = int(status.partition("VmRSS:")[2].split()[0])
        files = sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())
        self.samples.append((round(at, 1), resident, files))


@dataclass
class Counted:
    resumes: list[float] = field(default_factory=list)  # seconds each
    suspends: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class System:
    """ateapi, atelet and a worker of the null class below `root`."""

    def __init__(self, root: Path, stack: AsyncExitStack) -> None:
        self._root = root
        self._stack = stack
        self._identity = LocalIdentity(root / "state")
        self._identity.ensure()
        self.processes: list[Running] = []

    async def start(self) -> Any:
        """A stub of the control plane, once the worker is registered."""
        pods, services = self._identity.trust("pod-identity"), self._identity.trust("service-dns")
        api = await self._start(
            *("ateapi", "serve", "--listen", "127.0.0.1:0", "--store", self._root / "ate.db"),
            *("--snapshots", self._root / "snapshots", "--client-roots", pods),
            *("--node-roots", pods, "--log-level", "warning"),
            *(
                "--server-credential",
                self._identity.service_credential("ateapi", [spiffe.API_SERVER_NAME]),
            ),
            *("--client-credential", self._identity.credential("ateapi", spiffe.API_ID)),
        )
        await self._start(
            *("atelet", "--node", "node-1", "--listen", "127.0.0.1:0", "--api", api["grpc"]),
            *("--credential", self._identity.credential("atelet", spiffe.ATELET_ID, node="node-1")),
            *("--trust", pods, "--api-roots", services, "--state-dir", self._root / "node"),
            *("--snapshots", self._root / "snapshots", "--socket", self._root / "atelet.sock"),
            *("--log-level", "warning"),
        )
        await self._start(
            *("ateworker", "--sandbox", "null", "--name", "worker-1", "--slots", _SLOTS),
            *("--listen", "127.0.0.1:0", "--ip", "127.0.0.1", "--network-pool", 4),
            *("--atelet-socket", self._root / "atelet.sock", "--socket", self._root / "w.sock"),
            *(
                "--credential",
                self._identity.credential("worker", spiffe.pod_id("default", "local")),
            ),
            *("--trust", pods, "--state-dir", self._root / "worker", "--log-level", "warning"),
            *("--net-prefix", f"b{secrets.token_hex(3)}-"),
        )
        channel = mtls_channel(
            api["grpc"],
            credential=self._identity.credential("ate-cli", spiffe.CLI_ID),
            roots=services,
            server_name=spiffe.API_SERVER_NAME,
        )
        self._stack.push_async_callback(channel.close)
        return pb_grpc.ControlStub(channel)

    async def _start(self, program: str, *words: object) -> dict[str, str]:
        ready = self._root / f"{program}.ready"
        with (self._root / f"{program}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name(program)),
                *map(str, words),
                *("--ready-file", str(ready)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._stack.push_async_callback(_end, process)
        self.processes.append(Running(program, process))
        deadline = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if process.returncode is not None or time.monotonic() > deadline:
                said = (self._root / f"{program}.log").read_text()
                raise SystemExit(f"{program} did not start:\n{said}")
            await asyncio.sleep(0.05)
        found: dict[str, str] = json.loads(ready.read_text())
        return found


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        await within(process.wait(), 60)


async def _prepare(control: Any) -> list[str]:
    space = pb.Atespace(metadata=pb.ResourceMetadata(name=_SPACE))
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=space))
    template = pb.ActorTemplate(
        metadata=pb.ResourceMetadata(atespace=_SPACE, name="nothing"),
        containers=[pb.Container(name="main", command=["nothing"])],
        sandbox_config=pb.SandboxConfig(sandbox_class="null"),
    )
    template.containers[0].wakeup_probe.tcp_port = 80
    template.containers[0].wakeup_probe.timeout_seconds = 10
    template.volumes.add(name="data").durable_dir.SetInParent()
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=template))
    names = [f"a{number}" for number in range(_ACTORS)]
    for name in names:
        actor = pb.Actor(
            metadata=pb.ResourceMetadata(atespace=_SPACE, name=name),
            actor_template=pb.ObjectRef(atespace=_SPACE, name="nothing"),
        )
        await control.CreateActor(pb.CreateActorRequest(actor=actor))
    return names


async def _turn(control: Any, name: str, counted: Counted) -> None:
    """One resume and one suspend."""
    ref = pb.ObjectRef(atespace=_SPACE, name=name)
    try:
        began = time.perf_counter()
        await control.ResumeActor(pb.ResumeActorRequest(actor=ref), timeout=60)
        resumed = time.perf_counter()
        await control.SuspendActor(pb.SuspendActorRequest(actor=ref), timeout=60)
    except Exception as e:  # noqa: BLE001 - every failure is part of the result
        counted.failures.append(f"{name}: {e}")
        return
    counted.resumes.append(resumed - began)
    counted.suspends.append(time.perf_counter() - resumed)


async def _churn(control: Any, names: list[str], system: System, args: Any) -> Counted:
    """Turns at the wanted rate, however long each takes; samples meanwhile."""
    counted, turns = Counted(), itertools.cycle(names)
    began, beat, sample = time.monotonic(), 60.0 / args.rate, 0.0
    async with asyncio.TaskGroup() as group:
        for number in itertools.count():
            due = number * beat
            if due > args.minutes * 60:
                break
            await asyncio.sleep(max(0.0, began + due - time.monotonic()))
            group.create_task(_turn(control, next(turns), counted))
            if due >= sample:
                sample += _SAMPLE_SECONDS
                for process in system.processes:
                    process.sample(due)
    return counted


def _report(args: Any, counted: Counted, system: System) -> dict[str, Any]:
    """Growth: the mean of the last fifth of the samples against that of the second fifth."""
    report: dict[str, Any] = {
        "turns_per_minute": args.rate,
        "minutes": args.minutes,
        "resumes": len(counted.resumes),
        "suspends": len(counted.suspends),
        "failures": counted.failures[:20],
        "failed": len(counted.failures),
        "resume_ms": _milliseconds(counted.resumes),
        "suspend_ms": _milliseconds(counted.suspends),
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for process in system.processes:
        fifth = max(1, len(process.samples) // 5)
        early, late = process.samples[fifth : 2 * fifth], process.samples[-fifth:]
        report[process.name] = {
            what: {
                "early": round(statistics.mean(s[column] for s in early)),
                "late": round(statistics.mean(s[column] for s in late)),
            }
            for what, column in (("resident_kib", 1), ("open_files", 2))
        } | {"samples": process.samples}
    return report


def _milliseconds(taken: list[float]) -> dict[str, float]:
    ordered = sorted(taken) or [0.0]
    places = {"median": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "worst": -1}
    return {name: round(ordered[place] * 1000, 1) for name, place in places.items()}


async def _run(args: Any) -> int:
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="churn-")))
        system = System(root, stack)
        control = await system.start()
        names = await _prepare(control)
        counted = await _churn(control, names, system, args)
        workers = (await control.ListWorkers(pb.ListWorkersRequest())).workers
        taken = sum(worker.status.allocated.actors for worker in workers)
        report = _report(args, counted, system) | {"slots_left_taken": taken}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "churn.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(
        json.dumps(
            {k: v for k, v in report.items() if k not in ("machine", "versions")},
            default=str,
            indent=1,
        )
    )
    print(f"==> {path}")
    return 1 if counted.failures or taken else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long (10 for a long one)")
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="resumes, and as many suspends, per minute"
    )
    return asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
