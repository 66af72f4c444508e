"""The test of tests: every promise has a test or a reason to wait; no test names another one."""

import pytest

from tests.conformance import table


@pytest.fixture(scope="module")
def rows() -> dict[str, set[str]]:
    return table.rows(table.TABLE.read_text())


@pytest.fixture(scope="module")
def pending() -> dict[str, str]:
    return table.pending(table.PENDING.read_text())


@pytest.fixture(scope="module")
def claims() -> list[table.Claim]:
    return table.all_claims()


def test_the_table_is_read(rows: dict[str, set[str]]) -> None:
    assert {row[0] for row in rows} == {"I", "T", "E", "C"}
    assert rows["I-01"] == {"agentgateway", "envoy"}
    assert rows["I-15"] == {"agentgateway"}
    assert rows["I-16"] == {"envoy"}
    assert rows["T-01"] == set()


def test_every_row_is_tested_or_waits_with_a_reason(
    rows: dict[str, set[str]], pending: dict[str, str], claims: list[table.Claim]
) -> None:
    claimed = {row for claim in claims for row in claim.rows}
    assert sorted(set(rows) - claimed - set(pending)) == []


def test_no_row_is_both_tested_and_waiting(
    pending: dict[str, str], claims: list[table.Claim]
) -> None:
    claimed = {row for claim in claims for row in claim.rows}
    assert sorted(claimed & set(pending)) == [], "tested now: take them out of pending.txt"


def test_every_named_row_exists(
    rows: dict[str, set[str]], pending: dict[str, str], claims: list[table.Claim]
) -> None:
    named = {row: claim.name for claim in claims for row in claim.rows} | dict.fromkeys(
        pending, "pending.txt"
    )
    assert {row: where for row, where in named.items() if row not in rows} == {}


def test_a_row_of_one_dataplane_is_tested_on_that_one_only(
    rows: dict[str, set[str]], claims: list[table.Claim]
) -> None:
    wrong = []
    for claim in claims:
        bound = [rows[row] for row in claim.rows if rows.get(row)]
        if claim.only and bound and not any(claim.only <= planes for planes in bound):
            wrong.append(f"{claim.name}: only {sorted(claim.only)}, which none of its rows binds")
    assert wrong == []


# -- the reader itself

SOURCE = """
import pytest
pytestmark = [pytest.mark.conformance("I-01"), pytest.mark.only("envoy")]
@pytest.mark.conformance("I-02", "I-03")
async def test_one(): ...
class TestMore:
    @pytest.mark.conformance("T-01")
    def test_two(self): ...
def helper(): ...
"""


def test_marks_of_module_and_function_add_up() -> None:
    one, two = table.claims(SOURCE, "x.py")
    assert (one.rows, one.only) == ({"I-01", "I-02", "I-03"}, {"envoy"})
    assert (two.rows, two.only) == ({"I-01", "T-01"}, {"envoy"})


def test_a_mark_on_what_is_no_test_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no test"):
        list(table.claims('@pytest.mark.conformance("I-01")\ndef helper(): ...', "x.py"))


def test_a_row_that_waits_without_a_reason_is_an_error() -> None:
    with pytest.raises(AssertionError, match="without a reason"):
        table.pending("I-01")


def test_a_doubled_row_is_an_error() -> None:
    with pytest.raises(AssertionError, match="twice"):
        table.rows("| I-01 | AE | S | a |\n| I-01 | AE | S | b |")
