"""The demo's verdict: one promise that is not kept fails all of it, whatever broke it."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import click
import pytest
from atenet.errors import AteError
from atenet.local.demo import run as demo
from atenet.local.demo.report import Report, require


def unkept() -> str:
    require(False, "404 instead")
    return "never seen"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (AteError("it broke", hint="mend it"), "it broke; hint: mend it"),
        (ConnectionResetError("reset"), "reset"),
        (http.client.BadStatusLine("HTP/1"), "BadStatusLine: HTP/1"),
        (KeyError("count"), "KeyError: 'count'"),
    ],
)
def test_whatever_a_check_raises_is_one_that_failed(
    error: Exception, seen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def look() -> str:
        raise error

    report = Report()
    report.check("a promise", look)
    report.check("another", lambda: "kept")
    assert report.conclude() == 1
    said = click.unstyle(capsys.readouterr().out)
    assert "FAIL  a promise" in said
    assert seen in said
    assert "1 of 2 checks passed" in said


def test_only_kept_promises_end_it_well(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.check("a promise", lambda: "kept")
    assert report.conclude() == 0
    report.check("another", unkept)
    assert report.conclude() == 1
    assert "404 instead" in capsys.readouterr().out


@contextmanager
def staged(*_: object, **__: object) -> Iterator[SimpleNamespace]:
    """A world that no check looks at."""
    system = SimpleNamespace(layout=None)
    yield SimpleNamespace(ready={"ready_seconds": 1.0}, keeps_memory=False, system=system)


@pytest.mark.parametrize("broken", [None, *range(len(demo._CHECKS))])
def test_each_check_of_the_demo_decides_its_exit_code(
    broken: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [(promise, lambda _: "kept") for promise, _ in demo._CHECKS]
    if broken is not None:
        checks[broken] = (checks[broken][0], lambda _: unkept())
    monkeypatch.setattr(demo, "_CHECKS", tuple(checks))
    monkeypatch.setattr(demo, "find_software", lambda: None)
    monkeypatch.setattr(demo, "running_world", staged)
    monkeypatch.setattr(demo, "left_behind", lambda _: [])
    assert demo.run(dataplane="envoy", keep=False) == (0 if broken is None else 1)


def test_what_is_left_on_the_machine_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_CHECKS", ())
    monkeypatch.setattr(demo, "find_software", lambda: None)
    monkeypatch.setattr(demo, "running_world", staged)
    monkeypatch.setattr(demo, "left_behind", lambda _: ["mount of something"])
    assert demo.run(dataplane="envoy", keep=False) == 1
