from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from atenet import logs


@pytest.fixture(autouse=True)
def _root_logger_restored() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before[0], before[1]


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_line_is_one_json_object_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("ateapi")
    logging.getLogger("x").info("resumed %s", "a\nb", extra={"atespace": "team-a"})
    (line,) = _lines(capsys)
    assert line["message"] == "resumed a\nb"
    assert (line["level"], line["process"], line["logger"]) == ("info", "ateapi", "x")
    assert line["atespace"] == "team-a"
    assert str(line["time"]).endswith("+00:00")


def test_an_exception_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("ateapi")
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = _lines(capsys)
    assert "ValueError: why" in str(line["exception"])


def test_the_level_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("ateapi", "warning")
    logging.getLogger("x").info("no")
    assert _lines(capsys) == []


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(ValueError, match="'loud'"):
        logs.configure("ateapi", "loud")
