"""A real S3 server as a process of its own, on a port that the kernel picks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 30


@dataclass
class S3Server:
    """`variables`: what a client of it must have in its environment."""

    endpoint: str
    process: subprocess.Popen[bytes]

    @property
    def variables(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def bucket(self, name: str) -> str:
        """Makes it; returns its URL as --snapshots wants it."""
        asked = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(asked, timeout=_SECONDS).close()
        return f"s3://{name}/some/where"


@contextmanager
def s3_server(log: Path, address: str = "127.0.0.1") -> Iterator[S3Server]:
    script = Path(sys.executable).with_name("moto_server")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [script, "-H", address, "-p", "0"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        yield S3Server(_announced(process, log), process)
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    import threading
    import time

    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"Running on (http://[\d.]+:\d+)", log.read_text())
        if found:
            return found[1]
        threading.Event().wait(0.05)
    raise AssertionError(f"the S3 server did not start:\n{log.read_text()}")
