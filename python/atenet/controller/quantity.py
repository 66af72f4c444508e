"""Kubernetes' quantities (`500m`, `2`, `1Gi`) as numbers."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["quantity"]

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def quantity(text: str | int) -> Decimal:
    """Raises ValueError for what is none."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity such as 500m, 2 or 1Gi")
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix in _BINARY:
        return number * Decimal(1024 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:])) if suffix else number
