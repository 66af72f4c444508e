"""Where secrets come from, and whose they are."""

import os
from pathlib import Path

import pytest
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
