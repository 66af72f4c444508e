"""Leaving in order, with a carrier whose every answer the test decides."""

import asyncio
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.router.drain import clear_marker, drain, set_marker, wait_marker

from tests.support.eventually import within


class Scripted:
    """Carries `left` requests, one number a look; None: it is gone."""

    def __init__(self, *left: int | None) -> None:
        self._left = list(left)
        self.began = False
        self.looks = 0

    def begin(self) -> None:
        self.began = True

    def requests(self) -> int:
        self.looks += 1
        left = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if left is None:
            raise AteError("gone")
        return left


async def run(carrier: Scripted, *, limit: float = 5.0, hurry: asyncio.Event | None = None) -> bool:
    return await drain(
        carrier, delay=0.0, limit=limit, hurry=hurry or asyncio.Event(), not_ready=lambda: None
    )


async def test_it_ends_when_two_looks_in_a_row_find_nothing() -> None:
    carrier = Scripted(3, 0, 1, 0, 0)
    assert await run(carrier) is True
    assert (carrier.began, carrier.looks) == (True, 5)


async def test_what_does_not_end_is_left_at_the_limit() -> None:
    assert await run(Scripted(1), limit=0.3) is False


async def test_a_carrier_that_is_gone_has_nothing_left() -> None:
    assert await run(Scripted(2, None)) is True


async def test_a_second_signal_ends_it_at_once() -> None:
    hurry = asyncio.Event()
    hurry.set()
    carrier = Scripted(1)
    assert await within(run(carrier, limit=600.0, hurry=hurry), 5) is False


async def test_readiness_ends_before_the_delay_and_the_drain_begins_after_it() -> None:
    carrier, seen = Scripted(0), []
    task = asyncio.create_task(
        drain(
            carrier,
            delay=0.3,
            limit=5.0,
            hurry=asyncio.Event(),
            not_ready=lambda: seen.append(carrier.began),
        )
    )
    await asyncio.sleep(0.1)
    assert (seen, carrier.began) == ([False], False)
    assert await task is True
    assert carrier.began is True


def test_a_stale_marker_is_removed_and_a_missing_one_is_fine(tmp_path: Path) -> None:
    marker = tmp_path / "drained"
    clear_marker(marker)
    marker.touch()
    clear_marker(marker)
    assert not marker.exists()
    clear_marker(None)


def test_a_marker_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "drained"
    directory.mkdir()
    with pytest.raises(AteError, match="--drain-complete-file"):
        clear_marker(directory)


def test_the_marker_releases_the_hook(tmp_path: Path) -> None:
    marker = tmp_path / "signal" / "drained"
    assert wait_marker(marker, 0.0) is False
    set_marker(marker)
    assert wait_marker(marker, 0.0) is True
    assert marker.read_text().startswith("20")


def test_a_marker_that_cannot_be_written_is_logged_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    set_marker(tmp_path / "file" / "drained")
    assert "cannot write the drain marker" in caplog.text
