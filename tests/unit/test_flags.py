from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from atenet.errors import AteError
from atenet.flags import flag, flag_name, options_for, seconds
from click.testing import CliRunner


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str = flag("Who.")
    state_dir: Path = flag("Where.")
    slots: int = flag("How many.", default=4)
    label: tuple[str, ...] = flag("What.", default=())
    grace: float = flag("How long.", default=5.0, kind=seconds)
    ready_file: Path | None = flag("File.", default=None)

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise AteError(f"--slots {self.slots} is not above 0", hint="use 1")


def run(*words: str) -> tuple[int, str, list[Settings]]:
    seen: list[Settings] = []

    @click.command()
    @options_for(Settings)
    def command(settings: Settings) -> None:
        seen.append(settings)

    result = CliRunner().invoke(command, words)
    return result.exit_code, result.output, seen


def test_flags_become_settings() -> None:
    words = ["--name", "x", "--state-dir", "/s", "--label", "a=b", "--label", "c=d"]
    code, _, seen = run(*words, "--grace", "250ms", "--ready-file", "r")
    assert code == 0
    assert seen == [
        Settings(
            name="x",
            state_dir=Path("/s"),
            label=("a=b", "c=d"),
            grace=0.25,
            ready_file=Path("r"),
        )
    ]


def test_defaults_are_the_fields() -> None:
    _, _, (seen,) = run("--name", "x", "--state-dir", "/s")
    assert (seen.slots, seen.label, seen.grace, seen.ready_file) == (4, (), 5.0, None)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "--name"),
        (["--name", "x"], "--state-dir"),
        (["--name", "x", "--state-dir", "/s", "--slots", "many"], "--slots"),
        (["--name", "x", "--state-dir", "/s", "--slots", "0"], "--slots 0 is not above 0"),
        (["--name", "x", "--state-dir", "/s", "--grace", "soon"], "--grace"),
        (["--name", "x", "--state-dir", "/s", "--nmae", "x"], "--nmae"),
    ],
)
def test_what_is_wrong_is_named(words: list[str], named: str) -> None:
    code, said, seen = run(*words)
    assert code == 2
    assert named in said
    assert seen == []


def test_help_tells_every_flag_and_default() -> None:
    _, said, _ = run("--help")
    for word in ("--name", "Who.", "--state-dir", "default: 4", "default: 5.0", "required"):
        assert word in said


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("5s", 5), ("250ms", 0.25), ("2m", 120), ("1.5", 1.5), (3, 3), ("0s", 0)],
        *[("1h", 3600), ("90d", 90 * 86400)],
    ],
)
def test_durations(text: str | float, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 s", "1w", "1e3", "nan", "5S"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


def test_a_fields_flag() -> None:
    assert flag_name("allow_host_path") == "--allow-host-path"
