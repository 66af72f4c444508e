"""docs/parity.md: what each dataplane does with each row of the tables of ingress and egress.

It says what a green run of the suite means: a row is `passed` where every test of the row passed on that dataplane,
and `differs` where one of them is listed in differences.py, which is a strict xfail. So the page can be made, and
checked, without running anything. `python -m tests.conformance.parity [--check]`.
"""

import sys
from collections.abc import Iterable

from tests.conformance import table
from tests.conformance.differences import DIFFERENCES, Difference

PAGE = table.ROOT / "docs" / "parity.md"
DATAPLANES = ("agentgateway", "envoy")

_HEAD = """\
# Parity of the dataplanes

What `pytest tests/conformance` finds on each dataplane, row by row of [conformance.md](conformance.md). Made by
`make docs` from the tests themselves: `passed` where every test of the row passes there, `differs` where a test is
listed in tests/conformance/differences.py and therefore must fail. It tells dataplanes apart, and not what is still to
be mended: tests of known faults carry `pytest.mark.xfail` with a reason, and count as neither.

"""


def page(
    rows: dict[str, set[str]],
    pending: dict[str, str],
    claims: Iterable[table.Claim],
    differences: Iterable[Difference],
) -> str:
    """The page: the rows of ingress and egress that bind a dataplane and have tests."""
    claims, differences = list(claims), list(differences)
    lines = [f"| row | {' | '.join(DATAPLANES)} |", "|---" * (len(DATAPLANES) + 1) + "|"]
    for row, bound in rows.items():
        if not row.startswith(("I-", "E-")) or not bound or row in pending:
            continue
        cells = [
            _cell(row, plane, claims, differences) if plane in bound else "does not bind"
            for plane in DATAPLANES
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return _HEAD + "\n".join(lines) + "\n"


def _cell(row: str, plane: str, claims: list[table.Claim], differences: list[Difference]) -> str:
    tests = {
        claim.name.rpartition("::")[2]
        for claim in claims
        if row in claim.rows and (not claim.only or plane in claim.only)
    }
    assert tests, f"{row} binds {plane}, and no test of it runs there"
    reasons = [
        each.reason for each in differences if each.dataplane == plane and each.test in tests
    ]
    return f"differs: {'; '.join(dict.fromkeys(reasons))}" if reasons else "passed"


def made() -> str:
    """The page of this tree."""
    return page(
        table.rows(table.TABLE.read_text()),
        table.pending(table.PENDING.read_text()),
        table.all_claims(),
        DIFFERENCES,
    )


def main(arguments: list[str]) -> int:
    text = made()
    if arguments == ["--check"]:
        return int(PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
