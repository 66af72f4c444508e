"""What several gateways denied, as one list."""

from datetime import UTC, datetime

from atenet.denials.denial import Denial
from atenet.denials.merged import merged


def denial(first: int, last: int, times: int = 1, **changed: object) -> Denial:
    """Minutes of one hour."""
    given = {
        "first": datetime(2026, 1, 31, 12, first, tzinfo=UTC),
        "last": datetime(2026, 1, 31, 12, last, tzinfo=UTC),
        "times": times,
        "kind": "tls",
        "host": "a.example",
        "port": 443,
        "rule": None,
        "reason": "no-egress-rule",
        "detail": "no egress rule covers this host",
        **changed,
    }
    return Denial(**given)  # type: ignore[arg-type]


def test_the_same_denied_in_two_places_is_one_from_the_first_to_the_last() -> None:
    assert merged([denial(2, 5, 3), denial(1, 4, 4)]) == [denial(1, 5, 7)]


def test_what_differs_stays_apart_and_the_newest_comes_first() -> None:
    others = [
        denial(0, 2, host="b.example"),
        denial(0, 3, port=8443),
        denial(0, 4, kind="http"),
        denial(0, 5, rule=1),
        denial(0, 6, reason="address-denied"),
    ]
    assert merged([denial(0, 1), *others]) == [*reversed(others), denial(0, 1)]


def test_the_oldest_are_left_out_where_there_are_too_many() -> None:
    some = [denial(0, minute, host=f"{minute}.example") for minute in range(10)]
    assert [each.last.minute for each in merged(some, most=3)] == [9, 8, 7]
