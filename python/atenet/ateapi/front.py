"""The front: an engine process that callers connect to, before this one's own server.

It answers warm calls by a read of the store and carries all others here, over a Unix socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.ateapi.roles import Role, allowed
from atenet.errors import AteError

__all__ = ["Front", "FrontSettings", "grants_for"]

_log = logging.getLogger(__name__)
_START_SECONDS = 30.0
_END_SECONDS = 5.0
# One that does not say how much it answered has stopped answering.
_ANSWER_SECONDS = 10.0
_COUNT_SECONDS = 1.0
_FIRST_DELAY = 0.1
_LAST_DELAY = 5.0
_WARM = {
    "GetActor": "/ateapi.Control/GetActor",
    "GetActorEgressPolicy": "/ateapi.Control/GetActorEgressPolicy",
    "ResumeActor": "/ateapi.Control/ResumeActor",
    "Locate": "/ateapi.RouterSupport/Locate",
}

Counted = Callable[[str, int], None]
"""A warm method, and how many more calls of it were answered with OK."""


@dataclass(frozen=True)
class FrontSettings:
    """What the engine is told; see engine/atenet-engine/src/config/api_front.rs."""

    listen: str
    credential: Path
    client_roots: Path
    upstream: Path
    store: Path
    grants: Mapping[str, list[str]]
    log_level: str

    def told(self, listen: str) -> dict[str, Any]:
        credential = str(self.credential.absolute())
        front = {
            "listen": listen,
            "credentials": {"cert": credential, "key": credential},
            "client_roots": str(self.client_roots.absolute()),
            "upstream": self.upstream.name,  # it runs in that directory: the path may be too long
            "store": str(self.store.absolute()),
            "grants": self.grants,
        }
        return {"log_level": self.log_level, "front": front}


def grants_for(bindings: Iterable[tuple[str, Role]]) -> dict[str, list[str]]:
    """The warm methods that each SPIFFE id may call by the table of roles."""
    roles: dict[str, set[Role]] = {}
    for spiffe_id, role in bindings:
        roles.setdefault(spiffe_id, set()).add(role)
    return {
        spiffe_id: [name for name, method in _WARM.items() if allowed(held, method)]
        for spiffe_id, held in roles.items()
    }


def _refused(answer: Mapping[str, Any]) -> AteError:
    """Why it does not serve, as it says itself, and the hint for that."""
    message = str(answer["error"])
    hint = None
    if answer.get("other_engine"):
        hint = "is the engine (atenet._engine) of another version than ateapi? build both from one tree"
    elif ": cannot listen on " in message:
        hint = "is the port taken by another process, or the address not of this machine?"
    return AteError(message, hint=hint)


def _status(process: asyncio.subprocess.Process) -> str:
    code = process.returncode or 0
    return f"signal {-code}" if code < 0 else f"exit code {code}"


class Front:
    """Runs the process, starts it again should it end, and takes in what it counted."""

    def __init__(self, settings: FrontSettings, counted: Counted) -> None:
        self._settings = settings
        self._counted = counted
        self._process: asyncio.subprocess.Process | None = None
        self._seen: dict[str, int] = {}
        self._asking = asyncio.Lock()
        self._closing = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self.address = settings.listen

    async def start(self) -> None:
        """Raises AteError when it cannot serve: the address is taken, a file is unusable."""
        host = self._settings.listen.rpartition(":")[0]
        bound = await self._spawn(self._settings.listen)
        self.address = f"{host}:{bound.rpartition(':')[2]}"
        self._keeping = asyncio.get_running_loop().create_task(self._keep(), name="front")

    async def close(self, seconds: float) -> None:
        """No new connections; calls under way have `seconds` to end."""
        if self._keeping is None:
            return
        self._closing.set()
        await asyncio.gather(self._keeping, return_exceptions=True)
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            await self._count()
            process = self._running()
            self._write(process, {"close_seconds": seconds})
            async with asyncio.timeout(seconds + 5):
                await process.wait()
        await self._end()

    async def count(self) -> None:
        """Takes in what was answered until now, for who looks at the counts. Never raises for a
        front that is not there: what it had not told yet is lost with it."""
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            await self._count()

    async def _keep(self) -> None:
        delay = _FIRST_DELAY
        while not self._closing.is_set():
            if await self._lives():
                delay = _FIRST_DELAY
                continue
            try:
                await self._spawn(self.address)
            except AteError as e:
                _log.error("the front does not start", extra={"error": e.message})
                await self._pause(delay)
                delay = min(delay * 2, _LAST_DELAY)

    async def _lives(self) -> bool:
        """After a moment: whether it still answers; its counts are then taken in."""
        ended = asyncio.create_task(self._running().wait())
        closing = asyncio.create_task(self._closing.wait())
        await asyncio.wait(
            {ended, closing}, timeout=_COUNT_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (ended, closing):
            task.cancel()
        try:
            await self._count()
        except (OSError, EOFError, TimeoutError):
            await self._end()
            code = self._running().returncode
            _log.error("the front ended; it is started again", extra={"exit_code": code})
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def _spawn(self, listen: str) -> str:
        self._seen = dict.fromkeys(_WARM, 0)
        self._process = await asyncio.create_subprocess_exec(
            # -P: nothing that lies in that directory is imported.
            *(sys.executable, "-P", "-m", "atenet.ateapi.front_child"),
            cwd=self._settings.upstream.parent,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            answer = await self._ask(self._settings.told(listen), _START_SECONDS)
        except TimeoutError as e:
            await self._end()
            raise AteError(
                f"the control plane's front did not start within {_START_SECONDS:.0f} s"
            ) from e
        except (OSError, EOFError) as e:
            with contextlib.suppress(TimeoutError):  # its end is a moment behind that of its output
                async with asyncio.timeout(_END_SECONDS):
                    await self._process.wait()
            await self._end()
            raise AteError(
                f"the control plane's front ended at its start, with {_status(self._process)}",
                hint="what it wrote to standard error says why",
            ) from e
        if "error" in answer:
            await self._end()
            raise _refused(answer)
        return str(answer["address"])

    async def _count(self) -> None:
        async with self._asking:  # one question and its answer at a time
            answered = (await self._ask({}))["answered"]
            for method, total in answered.items():
                self._counted(method, total - self._seen[method])
                self._seen[method] = total

    async def _ask(self, what: dict[str, Any], seconds: float = _ANSWER_SECONDS) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            process = self._running()
            self._write(process, what)
            assert process.stdout is not None
            answer = await process.stdout.readline()
        if not answer:
            raise EOFError("the front ended")
        read: dict[str, Any] = json.loads(answer)
        return read

    def _write(self, process: asyncio.subprocess.Process, what: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(what).encode() + b"\n")

    async def _end(self) -> None:
        process = self._running()
        if process.returncode is None:
            process.kill()
        await process.wait()

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise EOFError("the front is not started")
        return self._process
