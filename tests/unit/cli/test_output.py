"""Tables, JSON, ages, progress."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from atenet.cli import output
from atenet.cli.output import age, show, working


def test_a_table_is_aligned_and_ends_without_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    show("table", None, ("NAME", "STATE"), [("a-long-name", "RUNNING"), ("b", "")])
    assert capsys.readouterr().out.splitlines() == [
        "NAME         STATE",
        "a-long-name  RUNNING",
        "b",
    ]


def test_json_is_the_data_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    data = [{"name": "ä"}]
    show("json", data, ("NAME",), [("ä",)])
    out = capsys.readouterr().out
    assert json.loads(out) == data
    assert "ä" in out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d"), (-5, "0s")],
)
def test_an_age_has_one_unit(seconds: int, text: str) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == text


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with working("being quick"):
        pass
    assert capsys.readouterr().err == ""


def test_what_takes_long_says_what_it_waits_for_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "_PATIENCE_SECONDS", 0.0)
    with working("waiting for ateapi") as say:
        seen = ""
        while "ateapi" not in seen:
            seen += capsys.readouterr().err
        say("waiting for worker-1")
        say("waiting for worker-1")
    captured = capsys.readouterr()
    assert captured.err == "waiting for worker-1 ...\n"
    assert captured.out == ""


def test_a_log_is_not_told_each_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    progress = output._Progress("starting")
    progress.appear()
    for number in range(5):
        progress.say(f"waiting for {number}")
    now = 101.0
    progress.say("waiting for the last")
    assert capsys.readouterr().err == "starting ...\nwaiting for the last ...\n"
