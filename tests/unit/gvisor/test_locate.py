from pathlib import Path

import pytest
from atenet.gvisor import OLDEST
from atenet.gvisor.locate import cache, find_runsc, release_of


def _program(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho runsc version {version}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("release-20260910.0", 20260910),
        ("atenet-20260905035102-160fafc42237", 20260905),
        ("VERSION_MISSING", None),
    ],
)
def test_a_version_names_its_day(version: str, day: int | None) -> None:
    assert release_of(version) == day


def test_the_one_on_path_is_used_if_it_is_recent_enough(tmp_path: Path) -> None:
    on_path = _program(tmp_path / "bin" / "runsc", "release-20270101.0")
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path)}
    built = _program(cache(environment) / "1" / "runsc", f"atenet-{OLDEST}")
    assert find_runsc(environment) == on_path
    _program(on_path, "release-20200101.0")
    assert find_runsc(environment) == built


def test_none_is_found_where_there_is_none_that_runs(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert find_runsc(environment) is None
    broken = cache(environment) / "1" / "runsc"
    broken.parent.mkdir(parents=True)
    broken.write_text("not a program")
    broken.chmod(0o755)
    assert find_runsc(environment) is None
