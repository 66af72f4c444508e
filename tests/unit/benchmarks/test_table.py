"""Measures: goals, the table, and that the committed page shows the committed results."""

from pathlib import Path

from benchmarks.goals import GOALS, Goal
from benchmarks.measures import available
from benchmarks.result import RESULTS, read_all
from benchmarks.table import BEGIN, PAGE, render, update

TAKEN = {
    "value": 1.7, "unit": "ratio", "ours": 51234.0, "peer": 30100.0, "peer_name": "Envoy",
    "date": "2030-01-02T03:04:05+00:00",
}  # fmt: skip


def test_a_goal_is_met_on_its_own_side() -> None:
    assert Goal("", "", least=1.5).met(1.5)
    assert not Goal("", "", least=1.5).met(1.49)
    assert Goal("", "", most=5).met(5)
    assert not Goal("", "", most=5).met(5.01)


def test_each_goal_has_one_bound_and_a_row_taken_or_not() -> None:
    rows = render({"P-01": TAKEN}).splitlines()[2:]
    assert len(rows) == len(GOALS)
    assert rows[0].endswith("| ≥ 1.5 | 1.7 ratio | 51 234 | 30 100 (Envoy) | yes | 2030-01-02 |")
    assert all("not taken yet" in row for row in rows[1:])
    assert all((g.least is None) != (g.most is None) for g in GOALS.values())


def test_a_missed_goal_stands_out() -> None:
    assert "| **no** |" in render({"P-01": {**TAKEN, "value": 1.2}})


def test_the_table_is_replaced_and_the_rest_of_the_page_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nthe last one\n<!-- end of results -->\nafter\n")
    update(page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "the last one" not in text


def test_the_committed_page_shows_the_committed_results() -> None:
    assert render(read_all()) in PAGE.read_text()


def test_every_measure_that_can_be_taken_has_a_goal() -> None:
    assert set(available()) <= set(GOALS)


def test_every_committed_result_says_how_it_was_taken() -> None:
    for identity, result in read_all().items():
        assert result["id"] == identity
        assert result["unit"] == GOALS[identity].unit
        assert len(result["runs"]) >= 5, identity
        assert result["command"] == f"make bench ONLY={identity}"
        assert {"cpu", "cores", "memory_gib", "kernel"} <= set(result["machine"])
        assert (RESULTS / f"{identity}.svg").exists(), identity
