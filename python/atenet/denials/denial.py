"""One denial, as a process tells it; what it tells is looked at before anybody believes it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

__all__ = ["Denial", "parse_denials", "printable"]

# Of one actor, from one process: the engine keeps fewer. A worker that was taken over drowns nobody else's.
_MOST = 256
_LONGEST = 300
_KINDS = (None, "http", "tls")


@dataclass(frozen=True, kw_only=True)
class Denial:
    """The same thing denied `times` times. `kind`: http or tls; None: it did not come to that."""

    first: datetime
    last: datetime
    times: int
    kind: str | None
    host: str | None
    port: int | None
    rule: int | None
    reason: str
    detail: str

    @classmethod
    def of(cls, given: dict[str, Any]) -> Denial:
        """From the page's JSON; keys that a newer process adds are left out. Raises ValueError naming the key."""
        kind = given.get("kind")
        if kind not in _KINDS:
            raise ValueError("kind is neither http nor tls")
        host = given.get("host")
        return cls(
            first=_time(given, "first"),
            last=_time(given, "last"),
            times=_number(given, "times", 1, 2**32 - 1),
            kind=kind,
            host=None if host is None else _text(given, "host"),
            port=None if given.get("port") is None else _number(given, "port", 0, 65535),
            rule=None if given.get("rule") is None else _number(given, "rule", 0, 2**31 - 1),
            reason=_text(given, "reason"),
            detail=_text(given, "detail"),
        )

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {**vars(self), "first": self.first.isoformat(), "last": self.last.isoformat()}


def parse_denials(body: bytes) -> list[Denial]:
    """Those of a page, no more than a process keeps. Raises ValueError: it is no list of denials."""
    try:
        given = json.loads(body)
    except RecursionError as error:
        raise ValueError("it is nested without end") from error
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError("it is no list of objects")
    return [Denial.of(each) for each in given[:_MOST]]


def printable(text: str) -> str:
    """On one line, not long, and without what moves a terminal's cursor or ends a comment."""
    shown = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.strip()
    )
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _text(given: dict[str, Any], key: str) -> str:
    found = given.get(key)
    if not isinstance(found, str):
        raise ValueError(f"{key} is no text")
    return printable(found)


def _number(given: dict[str, Any], key: str, least: int, most: int) -> int:
    found = given.get(key)
    if type(found) is not int or not least <= found <= most:
        raise ValueError(f"{key} is no number from {least} to {most}")
    return found


def _time(given: dict[str, Any], key: str) -> datetime:
    try:
        found = datetime.fromisoformat(str(given.get(key)))
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{key} is no time with its zone")
