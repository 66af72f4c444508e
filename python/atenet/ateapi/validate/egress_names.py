"""Hostname patterns of egress rules: a name, `*.` and a name, or `*`."""

from __future__ import annotations

import re

from atenet.ateapi.failure import invalid

__all__ = ["is_dns_name", "pattern"]

_NAME = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_NUMERAL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST = 253


def pattern(field: str, value: str) -> None:
    """Raises InvalidArgument unless it is a pattern as rules are matched by."""
    if not value:
        raise invalid(field, "must not be empty")
    if value == "*":
        return
    name = value.removeprefix("*.")
    if not is_dns_name(name):
        raise invalid(
            field,
            f"{value[:300]!r} is no pattern: give a lower-case DNS name (A-labels, without port"
            " or trailing dot), *. and such a name, or *",
        )
    if _NUMERAL.fullmatch(name.rpartition(".")[2]):
        # What ends in a number is an address to whoever resolves it, in many spellings.
        raise invalid(field, f"{value!r} is an address; rules name hosts")


def is_dns_name(value: str) -> bool:
    """Lower case, A-labels, no trailing dot."""
    return len(value) <= _LONGEST and _NAME.fullmatch(value) is not None
