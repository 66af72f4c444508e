"""The list of differences and the page that is made of it."""

from tests.conformance import parity, table
from tests.conformance.differences import DIFFERENCES, Difference


def test_the_committed_page_says_what_the_tests_say() -> None:
    assert parity.PAGE.read_text() == parity.made(), "run `make docs`"


def test_every_difference_is_one_of_a_test_that_names_a_row() -> None:
    tests = {claim.name.rpartition("::")[2] for claim in table.all_claims()}
    assert [each.test for each in DIFFERENCES if each.test not in tests] == []


def test_a_row_shows_as_passed_differing_or_not_bound() -> None:
    both = {"agentgateway", "envoy"}
    rows = {
        "I-01": both,
        "I-02": {"envoy"},
        "I-03": both,
        "T-01": set[str](),
        "E-01": set[str](),
        "E-04": both,
    }
    claims = [
        table.Claim("x.py::test_one", {"I-01", "I-02"}),
        table.Claim("x.py::test_two", {"E-04"}),
    ]
    text = parity.page(
        rows, {"I-03": "not built"}, claims, [Difference("envoy", "test_one", "so it is")]
    )
    assert "| I-01 | passed | differs: so it is |" in text
    assert "| I-02 | does not bind | differs: so it is |" in text
    assert "| E-04 | passed | passed |" in text
    assert not [row for row in ("T-01", "E-01", "I-03") if row in text]
