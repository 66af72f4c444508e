"""Where secrets come from, and whose they are."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from atenet._engine import check_name
from atenet.credentials.failure import Denied, NotThere
from atenet.credentials.secrets import MAX_BYTES, Secrets


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    (tmp_path / "team" / "api").mkdir(parents=True)
    (tmp_path / "team" / "api" / "token").write_bytes(b"s3cret\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "token").write_bytes(b"theirs")
    return Secrets(tmp_path, "ATE_SECRET_", {"ATE_SECRET_TEAM_A__KEY": "v"})


def test_a_file_is_read_below_the_actors_atespace(secrets: Secrets) -> None:
    assert secrets.read("team", ["file", "api", "token"]) == b"s3cret\n"
    for path in (["file", "token"], ["file", "api"], ["file", "api", "token", "x"]):
        with pytest.raises((NotThere, Denied)):
            secrets.read("team", path)


def test_a_variable_is_the_atespaces_own(secrets: Secrets) -> None:
    assert secrets.read("team-a", ["env", "key"]) == b"v"
    for atespace, path in (
        ("team", ["env", "A__KEY"]),
        ("team-a", ["env", "key", "x"]),
        ("b", ["env", "key"]),
    ):
        with pytest.raises(NotThere):
            secrets.read(atespace, path)


@pytest.mark.parametrize("name", ["B__TOKEN", "_TOKEN", "TOKEN_", "__", "_", "", "TO-KEN", "TÖKEN"])
def test_a_variables_name_that_could_be_anothers_is_refused_by_its_shape(name: str) -> None:
    everything = {
        f"ATE_SECRET_A__{name}": "theirs",
        "ATE_SECRET_A__B__TOKEN": "theirs",
    }
    secrets = Secrets(None, "ATE_SECRET_", everything)
    with pytest.raises(NotThere, match="single _ between"):
        secrets.read("a", ["env", name])
    assert secrets.read("a--b", ["env", "TOKEN"]) == b"theirs"


def _words(alphabet: str, longest: int) -> Iterator[str]:
    for length in range(1, longest + 1):
        for letters in itertools.product(alphabet, repeat=length):
            yield "".join(letters)


def _is_name(word: str) -> bool:
    try:
        check_name(word)
    except ValueError:
        return False
    return True


class _Asked(dict[str, str]):
    """An environment that has every variable, and notes which was asked for."""

    last: str

    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        self.last = key
        return "there"


def test_no_variable_is_read_for_two_atespaces_nor_by_two_names() -> None:
    """Every atespace and every name up to a length, over all that can be mistaken for another."""
    atespaces = [word for word in _words("aB-_0", 5) if _is_name(word)]
    assert {"a", "a-a", "a--a", "a---a", "0-a"} <= set(atespaces)
    assert not {"-a", "a-", "a_a", "B"} & set(atespaces)
    asked = _Asked()
    secrets = Secrets(None, "P_", asked)
    readers: dict[str, tuple[str, str]] = {}
    for atespace, name in itertools.product(atespaces, _words("aA_0", 5)):
        try:
            secrets.read(atespace, ["env", name])
        except NotThere:
            continue
        reader = (atespace, name.upper())
        assert readers.setdefault(asked.last, reader) == reader
    assert len(readers) > 1000


def test_a_link_leads_nowhere_else(secrets: Secrets) -> None:
    assert secrets.directory is not None
    own = secrets.directory / "team"
    (own / "within").symlink_to("api/token")
    (own / "across").symlink_to("../other/token")
    (own / "out").symlink_to("/etc/hostname")
    (own / "round").symlink_to("round")
    assert secrets.read("team", ["file", "within"]) == b"s3cret\n"
    for name in ("across", "out", "round"):
        with pytest.raises((Denied, NotThere)):
            secrets.read("team", ["file", name])


def test_only_regular_files_of_a_sane_size_are_read(secrets: Secrets) -> None:
    assert secrets.directory is not None
    own = secrets.directory / "team"
    os.mkfifo(own / "pipe")
    (own / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    for name in ("pipe", "large"):
        with pytest.raises(Denied):
            secrets.read("team", ["file", name])


def test_what_is_not_served_is_not_there(secrets: Secrets) -> None:
    for provider in ("vault", "FILE", ""):
        with pytest.raises(NotThere):
            secrets.read("team", [provider, "token"])
    none = Secrets(None, None, {})
    for provider in ("file", "env"):
        with pytest.raises(NotThere):
            none.read("team", [provider, "token"])
