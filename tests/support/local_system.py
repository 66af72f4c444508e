"""A local system as a person runs it: through the `ate` command, on addresses of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atenet.local.layout import Layout
from atenet.local.left import left_behind
from atenet.local.ports import beside_others
from atenet.local.settings import LocalSettings
from atenet.local.sweep import sweep

TOP = Path(__file__).resolve().parents[2]
COUNTER = TOP / "examples" / "counter"
LIMIT = 90.0


class Ran:
    """How a command ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}{self.err}"


class Ate:
    """The `ate` command on one state directory."""

    def __init__(self, home: Path) -> None:
        self.layout = Layout(home)
        moved = beside_others(LocalSettings())
        self.network = ["--address", moved.address, "--worker-network", moved.worker_network]

    def __call__(self, *words: str | Path, prefix: tuple[str, ...] = (), **variables: str) -> Ran:
        """Runs `ate WORDS` and returns how it ended; never raises for its exit code."""
        script = Path(sys.executable).with_name("ate")
        done = subprocess.run(
            [*prefix, script, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            env={**os.environ, "ATE_HOME": str(self.layout.home), **variables},
        )
        return Ran(done)

    def good(self, *words: str | Path) -> Ran:
        """The same, for what must succeed."""
        ran = self(*words)
        assert ran.code == 0, f"ate {' '.join(map(str, words))}: {ran}"
        return ran

    def up(self, *flags: str) -> Ran:
        """Of the process class unless the flags say otherwise."""
        given = flags if "--sandbox" in flags else ("--sandbox", "process", *flags)
        return self("up", *self.network, "--allow-host-path", COUNTER, *given)

    def furnish(self, *actors: str) -> None:
        """The counter's template, and an actor of it for each name."""
        self.good("atespace", "create", "demo")
        self.good("template", "create", "-f", COUNTER / "template.yaml")
        for name in actors:
            self.good("actor", "create", f"demo/{name}", "-t", "counter")

    def count(self, actor: str = "demo/one", *, add: bool = False) -> int:
        """Asks the counter, or adds one to it, through the router."""
        method = ["-X", "POST", "-d", ""] if add else []
        return int(self.good("curl", "--fail", actor, *method).json["count"])

    def state(self, actor: str = "demo/one") -> str:
        found = self.good("actor", "get", actor, "-o", "json").json
        return str(found["status"]["state"]).removeprefix("ACTOR_STATE_")

    def worker(self, actor: str = "demo/one") -> str:
        found = self.good("actor", "get", actor, "-o", "json").json
        return str(found["status"].get("workerAssignment", {}).get("workerPod", ""))

    def processes(self) -> dict[str, dict[str, Any]]:
        return {p["name"]: p for p in self("status", "-o", "json").json["processes"]}

    def kill(self, process: str) -> int:
        """kill -9; returns the pid it had."""
        pid = self.pid(process)
        os.kill(pid, signal.SIGKILL)
        return pid

    def pid(self, process: str) -> int:
        """`worker-1`, `supervisor`, or a process's own child: `ateapi's front`, `router's envoy`."""
        name, _, child = process.partition("'s ")
        record = json.loads(self.layout.record.read_text())
        pids = {p["name"]: p["pid"] for p in record["processes"]}
        pid = int(record["pid"] if name == "supervisor" else pids[name])
        if not child:
            return pid
        (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert child in Path(f"/proc/{found}/cmdline").read_text(), process
        return int(found)

    def left_behind(self) -> list[str]:
        """What of this system is still on the machine: processes, namespaces, mounts, cgroups."""
        return left_behind(self.layout)


@contextmanager
def ate_home() -> Iterator[Ate]:
    """A state directory with a short path (Unix sockets live below it); all of it goes at the end."""
    home = Path(tempfile.mkdtemp(prefix="ate-t-"))
    ate = Ate(home)
    try:
        yield ate
    finally:
        sweep(ate.layout)
        shutil.rmtree(home, ignore_errors=True)
