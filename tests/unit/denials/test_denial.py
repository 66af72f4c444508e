"""What a process tells of denials is looked at before anybody believes it: it may have been taken over."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from atenet.denials.denial import Denial, parse_denials, printable

ENTRY: dict[str, Any] = {
    "first": "2026-01-31T12:00:00.123Z",
    "last": "2026-01-31T14:00:01+02:00",
    "times": 2,
    "kind": "tls",
    "host": "a.example",
    "port": 443,
    "rule": None,
    "reason": "no-egress-rule",
    "detail": "no egress rule covers this host",
}


def parsed(*entries: Any) -> list[Denial]:
    return parse_denials(json.dumps(entries).encode())


def test_all_of_it_is_read_and_what_a_newer_process_adds_is_left_out() -> None:
    (found,) = parsed({**ENTRY, "newer": 1})
    assert (found.kind, found.host, found.port, found.rule) == ("tls", "a.example", 443, None)
    assert found.last == datetime(2026, 1, 31, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("first", "2026-01-31T12:00:00"),  # of no zone: it could not be put in order
        ("last", "0001-01-01T00:00:00+14:00"),
        ("last", None),
        ("times", "2"),
        ("times", True),
        ("times", 0),
        ("times", 10**30),
        ("kind", "dns"),
        ("kind", ["tls"]),
        ("host", {"a": 1}),
        ("port", "443"),
        ("port", 70_000),
        ("rule", -1),
        ("rule", 2**31),
        ("reason", None),
        ("detail", 1),
    ],
)
def test_what_is_no_denial_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key} is n"):
        parsed({**ENTRY, key: value})


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'["a"]', b"[" * 200_000, b"\xff"])
def test_what_is_no_list_of_them_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        parse_denials(body)


def test_one_process_tells_no_more_than_it_could_keep() -> None:
    assert len(parsed(*[ENTRY] * 5000)) < 500


def test_nothing_in_it_moves_a_cursor_ends_a_comment_or_is_without_end() -> None:
    evil = "a\x1b[2J\nrules:\r\u2028\u202e\x85b"
    (found,) = parsed({**ENTRY, "host": evil, "reason": evil, "detail": evil + "x" * 10_000})
    for text in (found.host, found.reason, found.detail):
        assert text is not None
        assert text.isprintable()
        assert len(text) <= 300
    assert printable(" plain words\n") == "plain words"
