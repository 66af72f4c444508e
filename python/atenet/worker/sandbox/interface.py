"""What the supervisor asks of a sandbox class. A further class is one more module beside this."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.proto import ateapi_pb2
from atenet.worker.network import NetworkPair
from atenet.worker.sandbox.limits import Limits
from atenet.worker.sandbox.plan import ContainerPlan

# What a template that names no class gets.
DEFAULT_CLASS = "process"

__all__ = [
    "DEFAULT_CLASS",
    "Exit",
    "Launch",
    "MemoryNotSavedError",
    "MemoryUnusableError",
    "NotNowError",
    "Sandbox",
    "SandboxGroup",
]


class MemoryNotSavedError(AteError):
    """Its memory could not be written, or its class keeps none; it is as before."""


class MemoryUnusableError(AteError):
    """The memory of a snapshot cannot go on here; the message says why."""


class NotNowError(AteError):
    """A passing fault of this node, and nobody's loss: the same may be tried again."""


@dataclass(frozen=True)
class Launch:
    """One activation, as much of it as a sandbox needs."""

    actor_name: str
    actor_uid: str
    containers: tuple[ContainerPlan, ...]
    network: NetworkPair
    limits: Limits
    durable: tuple[Path, ...]  # directories that become the actor's
    logs: Path
    facts: dict[str, str] = field(default_factory=dict)  # files at /run/ate: who it is
    memory: Path | None = None  # what `SandboxGroup.save` wrote; None: the commands are started
    # What `SandboxGroup.roots` was then: it goes on with those. None: not known, so not compared.
    roots: Mapping[str, str] | None = None
    newest: bool = False  # only if these are what a first start would be given


@dataclass(frozen=True)
class Exit:
    """How the first container of an activation ended. `status`: 128 + signal when killed; -1 when
    it ended too soon to tell."""

    container: str
    status: int
    last_lines: str

    def __str__(self) -> str:
        said = f"; its last lines:\n{self.last_lines}" if self.last_lines else "; it said nothing"
        how = f"exited with status {self.status}" if self.status >= 0 else "ended at once"
        return f"container {self.container!r} {how}{said}"


class SandboxGroup(Protocol):
    """A running activation's containers."""

    exited: asyncio.Future[Exit]
    """Done when the first container has ended by itself or was stopped."""

    roots: Mapping[str, str]
    """By container, which root file system its memory is of; empty for a class that keeps none."""

    async def check_freezable(self) -> None:
        """Raises FreezeUnavailableError where `freeze` is known to be impossible."""

    async def freeze(self) -> None:
        """Stops every process where it is, memory and all. Raises FreezeUnavailableError, and
        then all run on."""

    async def thaw(self) -> None:
        """Lets them go on. Repeatable."""

    async def save(self, directory: Path) -> None:
        """Writes the memory of a frozen group into the empty directory; it stays frozen.

        Raises MemoryNotSavedError, and then the directory is empty."""

    async def stop(self, wait: float) -> None:
        """Asks to stop, waits, then makes sure: no process is left, nothing on the host but
        logs and durable directories. A frozen one is thawed first. Repeatable."""


class Sandbox(Protocol):
    sandbox_class: str
    runtime: Runtime | None
    """What saved memory depends on; None for a class that keeps none."""

    def check(
        self, template: ateapi_pb2.ActorTemplate, roots: Mapping[str, str] | None = None
    ) -> None:
        """`roots`: of the memory that is to go on. Raises InvalidTemplateError for what this class
        cannot do."""

    async def start(self, launch: Launch) -> SandboxGroup:
        """Starts every container, or has them go on from `launch.memory`.

        Raises AteError and leaves nothing when one cannot start; MemoryUnusableError when that may
        be the memory's fault, NotNowError when it is not."""

    def clear(self) -> None:
        """Removes what an interrupted run left. Blocks; called before anything is started."""
