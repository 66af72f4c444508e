"""What identity asks of the API server, and how a look at it that fails is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, TypeVar

import httpx2
from lightkube import ApiError, AsyncClient

from atenet.controller.signing import names

__all__ = ["LABELS", "UNREACHABLE", "changes", "find", "is_conflict", "is_missing", "labels"]

# What a call to the API server can end with: its refusals, and none at all.
UNREACHABLE = (httpx2.HTTPError, OSError)

LABELS = {
    "app.kubernetes.io/part-of": "atenet",
    "app.kubernetes.io/component": "identity",
    "app.kubernetes.io/managed-by": names.CONTROLLER,
}

# The server ends a watch after this long, and it is opened anew where it ended.
_WATCH_SECONDS = 240

T = TypeVar("T")


def labels(**more: str) -> dict[str, str]:
    """Of whatever identity keeps in the cluster."""
    return {**LABELS, **more}


def is_missing(error: BaseException) -> bool:
    """There is no such object, or no such kind of object: that one is told without a Status."""
    if isinstance(error, ApiError):
        return error.status.code == 404
    return isinstance(error, httpx2.HTTPStatusError) and error.response.status_code == 404


def is_conflict(error: BaseException) -> bool:
    """It is there already, or somebody changed it meanwhile."""
    return isinstance(error, ApiError) and error.status.code == 409


async def find(
    client: AsyncClient, kind: type[T], name: str, namespace: str | None = None
) -> T | None:
    """The object, or None. Raises one of UNREACHABLE."""
    where: dict[str, Any] = {} if namespace is None else {"namespace": namespace}
    get: Any = client.get
    try:
        found: T = await get(kind, name, **where)
    except ApiError as e:
        if is_missing(e):
            return None
        raise
    return found


async def changes(
    client: AsyncClient, kind: type[T], **selection: Any
) -> AsyncIterator[tuple[str, T]]:
    """All there are, as ADDED, then what changes, until it fails. Raises one of UNREACHABLE."""
    watch: Any = client.watch
    async with aclosing(watch(kind, server_timeout=_WATCH_SECONDS, **selection)) as events:
        while True:
            # A connection that died unseen says nothing, not even that its time is over.
            async with asyncio.timeout(2 * _WATCH_SECONDS):
                event, thing = await anext(events)
            yield event, thing
