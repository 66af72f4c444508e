"""A router as an operator runs it: a process, its ready file, its signals, its metrics, its log."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.eventually import eventually

_STOP_LIMIT = 60.0


def program(name: str) -> str:
    """A console script of the environment that the tests run in."""
    return str(Path(sys.executable).with_name(name))


def _read(file: Path) -> str:
    return file.read_text(errors="replace")


class RouterProcess:
    """Started with `start`; ends with `stop` (SIGTERM) or `kill`."""

    def __init__(
        self, process: asyncio.subprocess.Process, log: Path, ready: dict[str, Any]
    ) -> None:
        self._process = process
        self._log = log
        self.ready = ready

    @classmethod
    async def start(cls, command: Sequence[str], directory: Path) -> "RouterProcess":
        """Runs the command with `--ready-file` and waits until it serves."""
        ready_file, log = directory / "ready.json", directory / "stderr.log"
        with log.open("wb") as sink:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--ready-file",
                str(ready_file),
                cwd=directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=sink,
                # Variables of the caller's shell that would steer telemetry or proxies stay out.
                env={"PATH": os.environ["PATH"], "HOME": str(directory), "RUST_BACKTRACE": "1"},
            )
        ready = await cls._wait_ready(process, ready_file, log)
        return cls(process, log, ready)

    @staticmethod
    async def _wait_ready(
        process: asyncio.subprocess.Process, ready_file: Path, log: Path
    ) -> dict[str, Any]:
        try:
            await eventually(lambda: ready_file.exists() or process.returncode is not None)
        except TimeoutError:
            process.kill()
            await process.wait()
        if process.returncode is not None:
            raise RuntimeError(f"the router ended with {process.returncode}:\n{_read(log)}")
        bound: dict[str, Any] = json.loads(_read(ready_file))
        return bound

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log_records(self) -> list[dict[str, Any]]:
        """The log's JSON lines; anything else on stderr is a fault."""
        return [json.loads(line) for line in self.log.splitlines() if line]

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    async def wait(self, limit: float = _STOP_LIMIT) -> int:
        async with asyncio.timeout(limit):
            return await self._process.wait()

    async def stop(self) -> int:
        """SIGTERM, then the exit status."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.terminate()
        return await self.wait()

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Metrics:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def sum(self, name: str, **labels: str) -> float:
        """The total of every sample of this name whose labels include these."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}


async def scrape(address: str) -> Metrics:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://{address}/metrics")
        answer.raise_for_status()
        return Metrics(answer.text)


async def status_of(address: str, path: str) -> int:
    """The status of a readiness or health page."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://{address}{path}")).status_code
