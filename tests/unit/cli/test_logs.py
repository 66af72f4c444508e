"""`ate logs`: the end of a file, and what comes after."""

from pathlib import Path

import pytest
from atenet.cli.failure import NoSuchThing
from atenet.cli.logs import _news, _process_log, tail
from atenet.local.layout import Layout


@pytest.mark.parametrize("lines", [0, 1, 5, 99, 100, 101])
def test_the_last_lines_of_a_file_larger_than_a_block(tmp_path: Path, lines: int) -> None:
    file = tmp_path / "log"
    content = [f"{number} {'x' * 3000}\n".encode() for number in range(100)]
    file.write_bytes(b"".join(content))
    assert tail(file, lines) == content[max(0, 100 - lines) :][: lines or 0]


def test_a_last_line_without_an_end_counts(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"a\nb\nc")
    assert tail(file, 2) == [b"b\n", b"c"]


def test_what_is_appended_is_news_and_a_new_file_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"old\n")
    places = {file: 4}
    with file.open("ab") as out:
        out.write(b"new\n")
    assert b"".join(_news(file, places)) == b"new\n"
    assert b"".join(_news(file, places)) == b""
    file.write_bytes(b"x\n")
    assert b"".join(_news(file, places)) == b"x\n"
    file.unlink()
    assert b"".join(_news(file, places)) == b""


def test_an_unknown_process_is_answered_with_those_that_are(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.logs.mkdir()
    layout.log("ateapi").write_text("")
    assert _process_log(layout, "ateapi") == layout.log("ateapi")
    with pytest.raises(NoSuchThing) as caught:
        _process_log(layout, "apiserver")
    assert caught.value.hint == "there are ateapi"
