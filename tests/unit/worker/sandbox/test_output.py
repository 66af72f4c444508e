import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from atenet.worker.sandbox import output
from atenet.worker.sandbox.output import OutputLog


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


async def written(log: OutputLog, threads: ThreadPoolExecutor, *pieces: bytes) -> None:
    """Writes them as an actor would, closes the pipe and waits for the copy."""
    copying = asyncio.ensure_future(log.copy(threads))
    for piece in pieces:
        await asyncio.to_thread(os.write, log.writer, piece)
    log.close_writer()
    await copying
    log.close()


async def test_what_is_written_is_in_the_file(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    log = OutputLog(tmp_path / "main.log", os.getuid())
    await written(log, threads, b"first\n", b"second\n")
    assert (tmp_path / "main.log").read_bytes() == b"first\nsecond\n"
    assert (tmp_path / "main.log").stat().st_mode & 0o777 == 0o600


async def test_a_later_start_goes_on_in_the_same_file(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    for line in (b"first\n", b"second\n"):
        await written(OutputLog(tmp_path / "main.log", os.getuid()), threads, line)
    assert (tmp_path / "main.log").read_bytes() == b"first\nsecond\n"


async def test_the_files_stay_small_and_the_end_is_kept(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    log = OutputLog(tmp_path / "main.log", os.getuid(), limit=100_000)
    pieces = [b"%06d\n" % number * 1000 for number in range(100)]
    await written(log, threads, *pieces)
    kept = (tmp_path / "main.log.1").read_bytes() + (tmp_path / "main.log").read_bytes()
    assert kept.endswith(b"000099\n")
    assert len(kept) <= 200_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main.log", "main.log.1"]


async def test_the_pipe_belongs_to_the_actor(tmp_path: Path, root: None) -> None:
    log = OutputLog(tmp_path / "main.log", 1610612737)
    assert os.fstat(log.writer).st_uid == 1610612737
    log.close()


async def test_a_full_disk_does_not_stop_the_writer(
    threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    log = OutputLog(Path("/dev/full"), os.getuid(), limit=1 << 40)
    await written(log, threads, *[b"x" * 100_000] * 10)
    assert [record.message for record in caplog.records] == ["output is lost"]


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "main.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        OutputLog(tmp_path / "main.log", os.getuid())
    assert not (tmp_path / "elsewhere").exists()


def test_the_tail_is_the_last_lines_and_printable(tmp_path: Path) -> None:
    path = tmp_path / "main.log"
    path.write_bytes(b"x" * 10_000 + b"\nthe \x1b[31mreason\x00\xff\nlast\n")
    assert output.tail(path, lines=2) == "the  [31mreason \ufffd\nlast"


def test_no_output_is_an_empty_tail(tmp_path: Path) -> None:
    assert output.tail(tmp_path / "absent.log") == ""
