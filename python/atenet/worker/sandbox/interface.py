"""What the supervisor asks of a sandbox class. A further class is one more module beside this."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from atenet.proto import ateapi_pb2
from atenet.worker.network import NetworkPair
from atenet.worker.sandbox.limits import Limits
from atenet.worker.sandbox.plan import ContainerPlan

# What a template that names no class gets.
DEFAULT_CLASS = "process"

__all__ = ["DEFAULT_CLASS", "Exit", "Launch", "Sandbox", "SandboxGroup"]


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


@dataclass(frozen=True)
class Exit:
    """How the first container of an activation ended. `status`: 128 + signal when killed."""

    container: str
    status: int
    last_lines: str

    def __str__(self) -> str:
        said = f"; its last lines:\n{self.last_lines}" if self.last_lines else "; it said nothing"
        return f"container {self.container!r} exited with status {self.status}{said}"


class SandboxGroup(Protocol):
    """A running activation's containers."""

    exited: asyncio.Future[Exit]
    """Done when the first container has ended by itself or was stopped."""

    async def check_freezable(self) -> None:
        """Raises FreezeUnavailableError where `freeze` is known to be impossible."""

    async def freeze(self) -> None:
        """Stops every process where it is, memory and all. Raises FreezeUnavailableError, and
        then all run on."""

    async def thaw(self) -> None:
        """Lets them go on. Repeatable."""

    async def stop(self, wait: float) -> None:
        """Asks to stop, waits, then makes sure: no process is left, nothing on the host but
        logs and durable directories. A frozen one is thawed first. Repeatable."""


class Sandbox(Protocol):
    sandbox_class: str

    def check(self, template: ateapi_pb2.ActorTemplate) -> None:
        """Raises InvalidTemplateError for what this class cannot do."""

    async def start(self, launch: Launch) -> SandboxGroup:
        """Starts every container. Raises AteError and leaves nothing when one cannot start."""

    def clear(self) -> None:
        """Removes what an interrupted run left. Blocks; called before anything is started."""
