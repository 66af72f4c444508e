"""Envoy as a child: started by exec, watched, and gone when this process is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from atenet.address import Address
from atenet.errors import AteError

__all__ = ["EnvoyProcess"]

_LOOK_SECONDS = 0.02
_STOP_SECONDS = 5.0

# Runs between fork and Envoy: asks the kernel to end Envoy when its parent dies, however it dies. It is a program of
# its own because this process has threads, and little may be done between their fork and an exec.
_ADOPT = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGTERM); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class EnvoyProcess:
    """One run of Envoy."""

    def __init__(self, process: asyncio.subprocess.Process, address_file: Path) -> None:
        self._process = process
        self._address_file = address_file

    @classmethod
    async def start(
        cls,
        binary: Path,
        bootstrap: dict[str, Any],
        directory: Path,
        *,
        concurrency: int | None,
        drain_seconds: float,
        log_level: str,
    ) -> EnvoyProcess:
        """Keeps the bootstrap in `directory`; Envoy's log goes to our stderr."""
        file, address_file = directory / "envoy.json", directory / "envoy-admin.address"
        address_file.unlink(missing_ok=True)
        file.write_text(json.dumps(bootstrap, indent=2))
        arguments = [
            *("--config-path", str(file)),
            *("--admin-address-path", str(address_file)),
            *("--drain-strategy", "immediate"),
            *("--drain-time-s", str(max(1, round(drain_seconds)))),
            # Below that Envoy logs the fields of every request, secrets and all.
            *("--log-level", "error" if log_level == "error" else "warning"),
            # The access log is a moment behind, not ten seconds.
            *("--file-flush-interval-msec", "500"),
            # Several may run on one machine; none takes over another's sockets.
            "--disable-hot-restart",
        ]
        if concurrency is not None:
            arguments += ["--concurrency", str(concurrency)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _ADOPT, str(os.getpid()), str(binary), *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        return cls(process, address_file)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def admin_address(self) -> Address:
        """Where its admin API listens, once it does."""
        while True:
            with contextlib.suppress(FileNotFoundError, ValueError):
                return Address.parse(self._address_file.read_text().strip())
            await asyncio.sleep(_LOOK_SECONDS)

    async def ended(self) -> AteError:
        """Waits for its end, which nobody asked for: what to say of it."""
        code = await self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return AteError(f"Envoy ended {how}", hint="its own words are above, in this log")

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not help. Returns when it is gone."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._process.wait()
