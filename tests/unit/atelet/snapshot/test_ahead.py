"""A stream read ahead gives the same bytes and the same errors, and its thread ends with the block."""

from __future__ import annotations

import io
import os
import threading

import pytest
from atenet.atelet.snapshot.ahead import ReadAhead


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "read-ahead"]


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 1000])
@pytest.mark.parametrize("size", [1, 7, 10, 64, -1])
def test_it_gives_what_the_source_gives(length: int, size: int) -> None:
    content = os.urandom(length)
    found = b""
    with ReadAhead(io.BytesIO(content), piece=10, ahead=2) as pieces:
        while piece := pieces.read(size):
            assert size < 0 or len(piece) <= size
            found += piece
        assert pieces.read(size) == b""
    assert found == content
    assert not threads()


class Breaking(io.BytesIO):
    """Gives ten bytes, then fails."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= 10:
            raise OSError("the network is gone")
        return super().read(size)


def test_what_the_source_raises_comes_where_it_happened_and_once() -> None:
    with ReadAhead(Breaking(bytes(100)), piece=5, ahead=8) as pieces:
        assert pieces.read(5) + pieces.read(5) == bytes(10)
        with pytest.raises(OSError, match="the network is gone"):
            pieces.read(5)
        assert pieces.read(5) == b""
    assert not threads()


class Endless(io.RawIOBase):
    """Counts how often it was read."""

    reads = 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        return bytes(size)


def test_who_leaves_early_is_not_read_for_and_never_more_than_a_few_pieces_are_kept() -> None:
    source = Endless()
    with ReadAhead(source, piece=10, ahead=3) as pieces:  # type: ignore[arg-type]
        assert pieces.read(10) == bytes(10)
    assert not threads()
    assert source.reads <= 5


def test_a_block_that_fails_ends_its_thread_too() -> None:
    with (
        pytest.raises(ValueError, match="of the block"),
        ReadAhead(Endless(), piece=10, ahead=3),  # type: ignore[arg-type]
    ):
        raise ValueError("of the block")
    assert not threads()
