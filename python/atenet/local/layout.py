"""Where a local system keeps its things: every path below the state directory, named once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from atenet.errors import AteError

__all__ = ["NODE", "Layout", "default_home"]

# The one node of a local system.
NODE = "local"

# sun_path holds 108 bytes with its final NUL.
_LONGEST_SOCKET = 107


def default_home(environment: Mapping[str, str] = os.environ) -> Path:
    """$ATE_HOME, else `ate` below the XDG state directory."""
    if environment.get("ATE_HOME"):
        return Path(environment["ATE_HOME"])
    state = environment.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "ate"


class Layout:
    """The state directory `home`. Pure: makes nothing, reads nothing."""

    def __init__(self, home: Path) -> None:
        self.home = Path(os.path.realpath(home.expanduser()))

    @cached_property
    def system_id(self) -> str:
        """Eight hex digits that stand for this home on this machine.

        Marks our processes (environment) and prefixes our namespaces and links, so that whoever
        starts or stops this home later finds what is ours, and nothing else, without a record.
        """
        return hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]

    def net_prefix(self, worker: int) -> str:
        """Prefix of worker N's network namespaces; no worker's is the start of another's."""
        return f"{self.net_family}{worker}-"

    @property
    def net_family(self) -> str:
        """What all workers' prefixes start with."""
        return f"ate{self.system_id}-"

    @property
    def config(self) -> Path:
        return self.home / "config"

    @property
    def router_config(self) -> Path:
        return self.config / "agentgateway.yaml"

    @property
    def egress_config(self) -> Path:
        return self.config / "egress.yaml"

    @property
    def secrets(self) -> Path:
        """Secrets that rules may put into requests: a directory for each atespace."""
        return self.home / "secrets"

    @property
    def router_state(self) -> Path:
        return self.home / "router"

    @property
    def egress_state(self) -> Path:
        return self.home / "egress"

    @property
    def decisions_socket(self) -> Path:
        return self.run / "decisions.sock"

    @property
    def sdsmint_socket(self) -> Path:
        return self.run / "sdsmint.sock"

    @property
    def store(self) -> Path:
        return self.home / "ateapi" / "ate.db"

    @property
    def snapshots(self) -> Path:
        return self.home / "snapshots"

    @property
    def node(self) -> Path:
        return self.home / "nodes" / NODE

    @property
    def images(self) -> Path:
        return self.node / "images"

    @property
    def atelet_socket(self) -> Path:
        return self.node / "run" / "atelet.sock"

    def worker(self, name: str) -> Path:
        return self.node / "workers" / name

    def worker_socket(self, name: str) -> Path:
        return self.node / "run" / f"{name}.sock"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def log(self, process: str) -> Path:
        return self.logs / f"{process}.log"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def lock(self) -> Path:
        return self.run / "lock"

    @property
    def record(self) -> Path:
        return self.run / "supervisor.json"

    @property
    def control_socket(self) -> Path:
        return self.run / "supervisor.sock"

    def ready_file(self, process: str) -> Path:
        return self.run / f"{process}.ready"

    def directories(self) -> list[Path]:
        """What must exist before processes start; all for the owner only."""
        return [
            self.home,
            self.config,
            self.router_state,
            self.egress_state,
            self.secrets,
            self.store.parent,
            self.snapshots,
            self.node.parent,
            self.node,
            self.node / "run",
            self.node / "workers",
            self.logs,
            self.run,
        ]

    def check_length(self, workers: int) -> None:
        """Raises AteError when a Unix socket below this home would not fit the kernel's limit."""
        longest = max(
            (
                self.atelet_socket,
                self.control_socket,
                self.sdsmint_socket,
                self.worker_socket(f"worker-{workers}"),
            ),
            key=lambda path: len(os.fsencode(path)),
        )
        over = len(os.fsencode(longest)) - _LONGEST_SOCKET
        if over > 0:
            raise AteError(
                f"--home: {self.home} is {over} bytes too long for the Unix sockets below it",
                hint="choose a shorter path with --home or ATE_HOME",
            )
