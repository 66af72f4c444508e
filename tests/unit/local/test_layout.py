"""Where a local system keeps its things."""

from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.local.layout import Layout, default_home


def test_ate_home_wins_over_the_xdg_state_directory() -> None:
    given = {"ATE_HOME": "/srv/ate", "XDG_STATE_HOME": "/xdg"}
    assert default_home(given) == Path("/srv/ate")
    assert default_home({"XDG_STATE_HOME": "/xdg"}) == Path("/xdg/ate")
    assert default_home({}) == Path.home() / ".local/state/ate"


def test_the_same_directory_is_the_same_system_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    by_link, by_dots = Layout(tmp_path / "link"), Layout(tmp_path / "real" / ".." / "real")
    assert by_link.system_id == by_dots.system_id == Layout(tmp_path / "real").system_id
    assert by_link.system_id != Layout(tmp_path / "other").system_id


def test_no_workers_prefix_is_the_start_of_anothers(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    prefixes = [layout.net_prefix(number) for number in range(1, 201)]
    for prefix in prefixes:
        assert [p for p in prefixes if p.startswith(prefix)] == [prefix]
        assert prefix.startswith(layout.net_family)
        assert len(prefix) <= 24  # what a worker accepts


def test_a_home_too_deep_for_unix_sockets_is_refused_before_anything_starts() -> None:
    deep = Path("/tmp") / ("x" * 90)
    with pytest.raises(AteError, match="--home") as caught:
        Layout(deep).check_length(workers=2)
    assert "shorter" in str(caught.value.hint)
    Layout(Path("/tmp/short")).check_length(workers=200)


def test_every_directory_comes_after_the_one_it_is_in(tmp_path: Path) -> None:
    made = {tmp_path.parent}
    for directory in Layout(tmp_path).directories():
        assert directory.parent in made or directory == tmp_path
        made.add(directory)
