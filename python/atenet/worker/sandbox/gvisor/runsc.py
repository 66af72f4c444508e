"""Calls of `runsc`: every one has a time limit and ends in its answer or a diagnosis. All block."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from atenet.errors import AteError
from atenet.gvisor import STATES, owned

__all__ = [
    "Runsc",
    "RunscError",
    "RunscTimeoutError",
    "clear_states",
    "kill",
    "processes",
]

# A restore into a container that is dead hangs; nothing here takes a second when it works.
_LIMIT_SECONDS = 20.0
# Memory is written, or read, as fast as the disk goes.
MEMORY_SECONDS = 300.0
_KILL_SECONDS = 5.0
_LOG = "runsc.log"
_FLAGS = (
    *("--platform=systrap", "--network=sandbox", "--ignore-cgroups", "--host-settings=ignore"),
    # What a container writes to its root stays in the sandbox's memory, and so in the checkpoint.
    "--overlay2=root:memory",
    # No connection crosses an activation: both ends are told at once.
    "--allow-live-tcp-migration=false",
    "--log-format=json",
)


class RunscError(AteError):
    """runsc refused, failed or hung; the message has its own last words."""


class RunscTimeoutError(RunscError):
    """It hung."""


class Runsc:
    """`state`: its directory for containers; short, for there are sockets in it."""

    def __init__(self, program: Path, state: Path) -> None:
        self.program = program
        self.state = state

    def call(
        self,
        *words: str,
        place: Path,
        output: int | None = None,
        seconds: float = _LIMIT_SECONDS,
        admit: Callable[[int], None] | None = None,
    ) -> str:
        """Runs it to its end; returns what it printed. `place`: directory for its log.

        `output`: descriptor that a container made by this call inherits as its output. `admit` is
        given the pid before anything runs under it. Raises RunscError.
        """
        log = place / _LOG
        log.unlink(missing_ok=True)
        command = [os.fspath(self.program), f"--root={self.state}", f"--log={log}", *_FLAGS, *words]
        piped = subprocess.PIPE if output is None else output
        if admit is not None:
            # Waits for a line, then becomes runsc.
            command = ["/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", *command]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if admit is None else subprocess.PIPE,
            stdout=piped,
            stderr=subprocess.STDOUT if output is None else piped,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
        )
        try:
            if admit is not None:
                admit(process.pid)
            said = _see_off(process, None if admit is None else b"\n", seconds)
        except subprocess.TimeoutExpired:
            raise RunscTimeoutError(f"runsc {words[0]} did not finish in {seconds:.0f} s") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        text = (said or b"").decode(errors="replace")
        if process.returncode:
            why = _last_error(log) or text.strip() or f"status {process.returncode}"
            raise RunscError(f"runsc {words[0]} failed: {why}")
        return text

    def wait_command(self, container: str, log: Path) -> list[str]:
        """A command that ends with the container and prints how it ended."""
        return [
            *(os.fspath(self.program), f"--root={self.state}", f"--log={log}", *_FLAGS),
            *("wait", container),
        ]

    def forget(self) -> None:
        """Removes the state directory; nothing of it runs any more."""
        # runsc keeps the empty namespace of its file servers mounted there.
        for mounted in self.state.glob("*netns*"):
            command = ["umount", "--lazy", str(mounted)]
            subprocess.run(command, capture_output=True, timeout=_LIMIT_SECONDS, check=False)
        shutil.rmtree(self.state, ignore_errors=True)

    def kill_all(self) -> list[int]:
        """SIGKILLs all that belongs to this state directory; returns the pids. Blocks."""
        return kill(lambda words: f"--root={self.state}" in words)


def clear_states(prefix: str) -> None:
    """Ends and removes all sandboxes of workers whose prefix begins so, and what they kept. Blocks."""
    if not owned(STATES):
        return  # No worker puts anything into what others can change, and what they put there is theirs.
    for state in STATES.glob(f"{prefix}*"):
        left = Runsc(Path("runsc"), state)
        left.kill_all()
        left.forget()


def processes(wanted: Callable[[Sequence[str]], bool]) -> Iterator[int]:
    """The pids of runsc's processes whose command line is wanted, as this process numbers them.

    An actor has no process on the host, so none of these can be forged by one.
    """
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[0].rpartition("/")[2].startswith("runsc") and wanted(words):
                yield int(entry.name)


def kill(wanted: Callable[[Sequence[str]], bool]) -> list[int]:
    """SIGKILLs runsc's processes whose command line is wanted, and waits until they are gone."""
    waiting: dict[int, int] = {}
    for pid in processes(wanted):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            waiting[descriptor] = pid
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_SECONDS
    for descriptor in waiting:
        select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        os.close(descriptor)
    return list(waiting.values())


def _see_off(process: subprocess.Popen[bytes], line: bytes | None, seconds: float) -> bytes | None:
    """Gives it its line; what it printed, once it has ended. Raises subprocess.TimeoutExpired."""
    if process.stdout is None:
        # `communicate` would look for its end in steps of up to 50 ms, which a request then waits for.
        if line is not None and process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as given:
                given.write(line)
        ended = select.poll()
        descriptor = os.pidfd_open(process.pid)
        try:
            ended.register(descriptor, select.POLLIN)
            if not ended.poll(seconds * 1000):
                raise subprocess.TimeoutExpired(process.args, seconds)
        finally:
            os.close(descriptor)
        process.wait()
        return None
    said, _ = process.communicate(line, timeout=seconds)
    return said


def _last_error(log: Path) -> str:
    """The last thing that it logged as an error, on one line."""
    with suppress(OSError):
        for line in reversed(log.read_text(errors="replace").splitlines()):
            with suppress(ValueError):
                entry = json.loads(line)
                if entry.get("level") in ("error", "fatal"):
                    return " ".join(str(entry.get("msg", "")).split())
    return ""
