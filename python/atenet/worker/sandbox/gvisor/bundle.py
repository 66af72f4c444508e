"""The OCI bundle of one container; pure but for `write`.

runsc compares the bundle of a restore with that of the checkpoint: only the sources of mounts, the
path of the network and what begins with a host path may differ. So nothing of an actor is in it but
directories: who it is, it reads in /run/ate.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.worker.sandbox.limits import PROCESSES
from atenet.worker.sandbox.plan import Bind, ContainerPlan

__all__ = ["ACCOUNT", "HOSTNAME", "Place", "spec", "write"]

# One number for all: memory that was saved under it goes on as any actor of its template. It is
# just below those of the process class.
ACCOUNT = 0x5FFF_FFFF
HOSTNAME = "actor"
_OCI_VERSION = "1.0.2"
_OPEN_FILES = 16384
_IDENTITY = ("ATE_ATESPACE", "ATE_ACTOR")
_KIND = "io.kubernetes.cri.container-type"
_NAME = "io.kubernetes.cri.container-name"
_SANDBOX = "io.kubernetes.cri.sandbox-id"


@dataclass(frozen=True)
class Place:
    """Where a container is put. `sandbox`: the id of the first container, which holds the rest."""

    root: Path
    system: tuple[Bind, ...]  # what the root directory lacks: /usr of the host
    facts: Path  # directory seen at /run/ate
    network: Path
    sandbox: str
    first: bool


def spec(plan: ContainerPlan, place: Place) -> dict[str, Any]:
    """The content of config.json."""
    variables = [f"{k}={v}" for k, v in plan.environment.items() if k not in _IDENTITY]
    nobody_can: dict[str, list[str]] = {
        kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
    }
    return {
        "ociVersion": _OCI_VERSION,
        "process": {
            "user": {"uid": ACCOUNT, "gid": ACCOUNT},
            "args": list(plan.command),
            "env": variables,
            "cwd": plan.working_dir,
            "noNewPrivileges": True,
            "capabilities": nobody_can,
            "rlimits": [
                {"type": f"RLIMIT_{name}", "soft": value, "hard": value}
                for name, value in (("NOFILE", _OPEN_FILES), ("NPROC", PROCESSES), ("CORE", 0))
            ],
        },
        "root": {"path": str(place.root), "readonly": False},
        "hostname": HOSTNAME,
        "mounts": [*_mounts(plan, place)],
        "annotations": {
            _KIND: "sandbox" if place.first else "container",
            _NAME: plan.name,
            _SANDBOX: place.sandbox,
        },
        "linux": {
            "namespaces": [
                *({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                {"type": "network", "path": str(place.network)},
            ]
        },
    }


def write(directory: Path, content: dict[str, Any]) -> None:
    """Makes the bundle; it may hold secrets, so it is for its owner only."""
    directory.mkdir(mode=0o700)
    config = directory / "config.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps(content))


def _mounts(plan: ContainerPlan, place: Place) -> list[dict[str, Any]]:
    facts = Bind(place.facts, "/run/ate", read_only=True)
    binds = (*place.system, facts, *plan.binds)
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},  # noqa: S108 - in the sandbox
        *(_bind(bind) for bind in binds),
    ]


def _bind(bind: Bind) -> dict[str, Any]:
    options = ["rbind", "ro" if bind.read_only else "rw", "nosuid", "nodev"]
    return {
        "destination": bind.target,
        "type": "bind",
        "source": str(bind.source),
        "options": options,
    }
