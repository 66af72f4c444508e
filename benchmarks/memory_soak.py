"""Rounds of waking and suspending gVisor actors that count in memory; nothing may grow, every count must be right.

`python -m benchmarks.memory_soak` (200 rounds) or `--rounds 1000`. A local system of two workers with four slots each
and twenty actors; a round is one request through the router, which wakes the actor and adds one, and a suspend.
Mounts, namespaces, sandboxes, processes, open files and bytes on disk are looked at after every actor has had two
rounds and at the end, with all asleep. What it saw goes to results/memory_soak.json; it fails when anything has grown
or a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from atenet.cli.control import DEADLINE_SECONDS, control
from atenet.cli.home import address_of
from atenet.client.request import ClientTls, RouterRequest, exchange
from atenet.local.demo.software import ATESPACE, find_software
from atenet.local.ports import beside_others
from atenet.local.settings import LocalSettings
from atenet.local.sweep import find_namespaces, find_processes, find_sandboxes
from atenet.local.system import LocalSystem
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.sandbox.gvisor.runsc import processes

from benchmarks.machine import machine, versions
from benchmarks.result import RESULTS

_ACTORS, _WORKERS, _SLOTS, _AT_ONCE = 20, 2, 4, 6
_TIMEOUT_SECONDS = 60.0
# Snapshots differ a little in size from one time to the next, and logs are kept.
_DISK_GROWTH = 1.25
# What garbage collection of the moment holds.
_FILES_GROWTH = 8


class Soak:
    def __init__(self, stack: ExitStack) -> None:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ate-soak-")))
        software = find_software()
        wanted = LocalSettings(
            dataplane="agentgateway",
            sandbox="gvisor",
            workers=_WORKERS,
            slots=_SLOTS,
            allow_host_path=software.host_paths,
        )
        self.system = LocalSystem(home)
        stack.callback(lambda: list(self.system.stop()))
        ready = list(self.system.start(beside_others(wanted)))[-1]
        self.router = address_of(ready, "router", "https")
        self.pids = {process["name"]: process["pid"] for process in ready["processes"]}
        self.tls = ClientTls.of(self.system.layout)
        self.stub = stack.enter_context(control(home))
        self.names = [f"a{number}" for number in range(_ACTORS)]
        self.wakes: list[float] = []
        self.suspends: list[float] = []
        self.wrong: list[str] = []
        self.counts = dict.fromkeys(self.names, 0)
        space = pb.Atespace(metadata=pb.ResourceMetadata(name=ATESPACE))
        self.stub.CreateAtespace(pb.CreateAtespaceRequest(atespace=space), timeout=DEADLINE_SECONDS)
        (template,) = (t for t in software.remembering() if t.metadata.name == "memory")
        asked = pb.CreateActorTemplateRequest(actor_template=template)
        self.stub.CreateActorTemplate(asked, timeout=DEADLINE_SECONDS)
        for name in self.names:
            self._create(name)

    def _create(self, name: str) -> None:
        actor = pb.Actor(
            metadata=pb.ResourceMetadata(atespace=ATESPACE, name=name),
            actor_template=pb.ObjectRef(atespace=ATESPACE, name="memory"),
        )
        self.stub.CreateActor(pb.CreateActorRequest(actor=actor), timeout=DEADLINE_SECONDS)

    def round(self, name: str) -> None:
        """One request, which wakes it and adds one; one suspend."""
        began = time.perf_counter()
        wanted = RouterRequest(actor=f"{ATESPACE}/{name}", path="/", method="POST", body=b"")
        with exchange(self.router, wanted, self.tls, _TIMEOUT_SECONDS) as answer:
            status, body = answer.status, answer.read()
        woken = time.perf_counter()
        self.counts[name] += 1
        if status != 200 or json.loads(body)["count"] != self.counts[name]:
            self.wrong.append(f"{name}: wanted {self.counts[name]}, got {status} {body[:200]!r}")
        asked = pb.SuspendActorRequest(actor=pb.ObjectRef(atespace=ATESPACE, name=name))
        self.stub.SuspendActor(asked, timeout=DEADLINE_SECONDS)
        self.wakes.append((woken - began) * 1000)
        self.suspends.append((time.perf_counter() - woken) * 1000)

    def rounds(self, number: int) -> None:
        """So many, several actors at once but each actor once at a time."""
        queues = [self.names[start::_AT_ONCE] for start in range(_AT_ONCE)]
        turns = number // len(self.names)

        def run(names: list[str]) -> None:
            for _ in range(turns):
                for name in names:
                    self.round(name)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(run, queues))

    def look(self) -> dict[str, Any]:
        layout = self.system.layout
        family = layout.net_family
        mounts = Path("/proc/mounts").read_text().splitlines()
        files = {
            name: sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            for name, pid in self.pids.items()
        }
        sandboxes = [p for s in find_sandboxes(family) for p in Path(s).iterdir()]
        return {
            "mounts": sum(1 for line in mounts if family in line or str(layout.home) in line),
            "namespaces": len(find_namespaces(family)),
            "containers": sum(1 for path in sandboxes if path.name not in ("null-netns", "work")),
            "runsc_processes": len(list(processes(lambda words: any(family in w for w in words)))),
            "processes": len(find_processes(layout.system_id)),
            "open_files": files,
            "disk_bytes": sum(p.lstat().st_size for p in layout.home.rglob("*") if p.is_file()),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    wanted = parser.parse_args().rounds
    with ExitStack() as stack:
        soak = Soak(stack)
        soak.rounds(2 * _ACTORS)
        early = soak.look()
        soak.wakes.clear()
        soak.suspends.clear()
        soak.rounds(wanted)
        late = soak.look()
    grown = _grown(early, late)
    report = {
        "rounds": len(soak.wakes),
        "actors": _ACTORS,
        "workers": _WORKERS,
        "slots": _WORKERS * _SLOTS,
        "wrong": soak.wrong[:20],
        "grown": grown,
        "wake_ms": _milliseconds(soak.wakes),
        "suspend_ms": _milliseconds(soak.suspends),
        "early": early,
        "late": late,
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "memory_soak.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps({k: report[k] for k in ("rounds", "wrong", "grown", "wake_ms", "suspend_ms")}))
    return 1 if soak.wrong or grown or len(soak.wakes) < wanted // _ACTORS * _ACTORS else 0


def _grown(early: dict[str, Any], late: dict[str, Any]) -> list[str]:
    """What there is more of than before."""
    counted = ("mounts", "namespaces", "containers", "runsc_processes", "processes")
    found = [
        f"{what}: {early[what]} -> {late[what]}" for what in counted if late[what] > early[what]
    ]
    for name, files in late["open_files"].items():
        if files > early["open_files"][name] + _FILES_GROWTH:
            found.append(f"open files of {name}: {early['open_files'][name]} -> {files}")
    if late["disk_bytes"] > early["disk_bytes"] * _DISK_GROWTH:
        found.append(f"disk: {early['disk_bytes']} -> {late['disk_bytes']} bytes")
    return found


def _milliseconds(taken: list[float]) -> dict[str, float]:
    ordered = sorted(taken)
    cut = ordered[len(ordered) * 99 // 100]
    return {"median": round(statistics.median(ordered), 1), "p99": round(cut, 1)}


if __name__ == "__main__":
    sys.exit(main())
