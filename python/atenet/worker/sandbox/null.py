"""The null class: for measures and tests of everything around a sandbox. Nothing runs in it.

An actor of this class is a port 80 that accepts and never answers, in a network of its own. Its
durable directories are empty and stay so.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from atenet._engine import socket_in_netns
from atenet.errors import AteError
from atenet.gvisor import Runtime
from atenet.proto import ateapi_pb2
from atenet.worker.sandbox.interface import Exit, Launch, MemoryNotSavedError

__all__ = ["NullSandbox"]

_PORT = 80


class NullSandbox:
    sandbox_class = "null"
    runtime: Runtime | None = None

    def check(
        self, template: ateapi_pb2.ActorTemplate, roots: Mapping[str, str] | None = None
    ) -> None:
        """Everything can be done by doing nothing."""

    async def start(self, launch: Launch) -> NullGroup:
        try:
            listener = socket.socket(fileno=socket_in_netns(os.fspath(launch.network.runtime_path)))
            listener.bind(("", _PORT))
            listener.listen()
        except OSError as e:
            raise AteError(f"the null sandbox cannot listen: {e}") from e
        return NullGroup(listener)

    def clear(self) -> None:
        """Nothing is ever left."""


class NullGroup:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.roots: Mapping[str, str] = {}
        self.exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def check_freezable(self) -> None:
        """It stands still anyway."""

    async def freeze(self) -> None:
        """It stands still anyway."""

    async def thaw(self) -> None:
        """It goes on doing nothing."""

    async def save(self, directory: Path) -> None:
        raise MemoryNotSavedError("the null class keeps no memory")

    async def stop(self, wait: float) -> None:
        del wait
        self._listener.close()
        if not self.exited.done():
            self.exited.set_result(Exit("null", 0, ""))
