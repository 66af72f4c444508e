"""How a command ends: two lines on stderr and an exit code."""

import sys

import click
import pytest
from atenet.cli.failure import BadInput, NoSuchThing, NotReachable, run
from atenet.errors import AteError


@click.command("it")
@click.option("--number", type=int, default=1)
def it(number: int) -> None:
    """Does what it is told."""


def command(error: BaseException) -> click.Command:
    @click.command()
    def fails() -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AteError("it broke", hint="mend it"), 1),
        (BadInput("it broke", hint="mend it"), 2),
        (NoSuchThing("it broke", hint="mend it"), 3),
        (NotReachable("it broke", hint="mend it"), 4),
    ],
)
def test_an_error_is_what_happened_and_a_hint(
    error: AteError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["ate"])
    assert run(command(error)) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: it broke\nhint: mend it\n")


def test_an_error_without_a_hint_of_its_own_leads_to_the_commands_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = click.Group("ate", {"it": command(AteError("it broke"))})
    monkeypatch.setattr(sys, "argv", ["ate", "it"])
    assert run(group) == 1
    assert capsys.readouterr().err == "error: it broke\nhint: `ate it --help` shows more\n"


def test_a_bad_flag_names_itself_and_where_to_read_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ate", "--number", "many"])
    assert run(it) == 2
    err = capsys.readouterr().err
    assert "'--number'" in err
    assert err.splitlines()[1] == "hint: `ate --help` shows what is allowed"


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ate"])
    assert run(command(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_a_commands_own_exit_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def says() -> int:
        return 22

    monkeypatch.setattr(sys, "argv", ["ate"])
    assert run(says) == 22
