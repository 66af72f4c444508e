"""Pages: sizes, and tokens that say where the next page begins."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from atenet.ateapi.failure import invalid

__all__ = ["MAX_PAGE", "Page", "page_size", "page_start", "page_token", "pair"]

MAX_PAGE = 1000
_DEFAULT_PAGE = 100
# What gRPC clients take as one message by default is 4 MiB; the frame needs a little.
_MAX_BYTES = 3 * 1024 * 1024
_MAX_TOKEN = 1024


class _ListRequest(Protocol):
    @property
    def page_size(self) -> int: ...
    @property
    def page_token(self) -> str: ...


class _Sized(Protocol):
    def ByteSize(self) -> int: ...


T = TypeVar("T", bound=_Sized)


class Page:
    """One page of a list of `kind`, ordered by keys of `parts` strings. Raises InvalidArgument."""

    def __init__(self, kind: str, request: _ListRequest, *, parts: int = 1) -> None:
        self._kind = kind
        self.size = page_size(request.page_size)
        self.after = page_start(kind, request.page_token, parts)

    def cut(self, found: Sequence[T], key: Callable[[T], tuple[str, ...]]) -> tuple[list[T], str]:
        """The page's items and the next page's token; `found` holds one more than fit, if any.

        A page also ends where it would outgrow one gRPC message; it holds one item at least.
        """
        items: list[T] = []
        left = _MAX_BYTES
        for item in found[: self.size]:
            left -= item.ByteSize()
            if left < 0 and items:
                break
            items.append(item)
        more = len(items) < len(found)
        return items, page_token(self._kind, *key(items[-1])) if more else ""


def pair(key: tuple[str, ...]) -> tuple[str, str]:
    """A key of two parts as what it is."""
    first, second = key
    return first, second


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
        if len(token) > _MAX_TOKEN:
            raise ValueError("too long")
        found = json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError) as e:
        raise invalid("page_token", "is not one that a list returned") from e
    good = isinstance(found, list) and len(found) == parts + 1
    if not good or found[0] != kind or not all(isinstance(p, str) for p in found):
        raise invalid("page_token", "is not one that this list returned")
    if any(not p.isascii() or "\0" in p for p in found):
        # Surrogates and NUL pass JSON; a database would choke on them.
        raise invalid("page_token", "is not one that this list returned")
    return tuple(found[1:])
