"""What `ate` and the supervisor say to each other."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.local.conversation import Listener, ask


async def _counts(operation: str) -> AsyncIterator[dict[str, Any]]:
    for number in range(3):
        yield {"event": operation, "number": number}
    yield {"done": True}


async def test_lines_arrive_in_order_up_to_the_last(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with await Listener().listen(path, _counts):
        heard = await asyncio.to_thread(lambda: list(ask(path, "count")))
    assert [line.get("number") for line in heard] == [0, 1, 2, None]
    assert heard[0]["event"] == "count"


async def test_only_the_owner_may_ask(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with await Listener().listen(path, _counts):
        assert path.stat().st_mode & 0o777 == 0o600


async def test_nonsense_is_no_operation(tmp_path: Path) -> None:
    path = tmp_path / "s"

    def send() -> bytes:
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(path))
            raw.sendall(b"what?\n")
            return raw.makefile("rb").readline()

    async with await Listener().listen(path, _counts):
        assert b'"event": ""' in await asyncio.to_thread(send)


def test_nobody_there_is_a_connection_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        list(ask(tmp_path / "none", "status"))


async def test_a_supervisor_that_hangs_up_half_way_is_told_apart(tmp_path: Path) -> None:
    async def dies(_: str) -> AsyncIterator[dict[str, Any]]:
        yield {"event": "stopping"}

    path = tmp_path / "s"
    async with await Listener().listen(path, dies):
        with pytest.raises(AteError, match="in the middle"):
            await asyncio.to_thread(lambda: list(ask(path, "stop")))
