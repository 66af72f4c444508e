"""Pages: sizes, and tokens that say where the next page begins."""

from __future__ import annotations

import base64
import binascii
import json

from atenet.ateapi.failure import invalid

__all__ = ["MAX_PAGE", "page_size", "page_start", "page_token"]

MAX_PAGE = 1000
_DEFAULT_PAGE = 100


def page_size(given: int) -> int:
    """0 = 100; more than 1000 counts as 1000; negative is InvalidArgument."""
    if given < 0:
        raise invalid("page_size", "must not be negative")
    return min(given, MAX_PAGE) or _DEFAULT_PAGE


def page_token(kind: str, *key: str) -> str:
    """Names the last item of a page. Opaque to callers; bound to the kind of list."""
    return base64.urlsafe_b64encode(json.dumps([kind, *key]).encode()).decode()


def page_start(kind: str, token: str, parts: int) -> tuple[str, ...]:
    """The key to start after: `parts` strings, empty ones for the first page."""
    if not token:
        return ("",) * parts
    try:
        found = json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as e:
        raise invalid("page_token", "is not one that a list returned") from e
    good = isinstance(found, list) and len(found) == parts + 1
    if not good or found[0] != kind or not all(isinstance(p, str) for p in found):
        raise invalid("page_token", "is not one that this list returned")
    return tuple(found[1:])
