"""Keeps a cache as the API server has it: lists, watches on from there, and lists again when it must."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from lightkube import ApiError, AsyncClient

from atenet.controller.backoff import Backoff
from atenet.controller.cache import Cache, version_of

__all__ = ["UNREACHABLE", "follow"]

_log = logging.getLogger(__name__)
# What any request may end with, and what is then tried again.
UNREACHABLE = (ApiError, httpx2.HTTPError, TimeoutError)
_PAGE = 500
# The server ends a watch after so long. If it has been silent for longer, it or the way to it is gone.
_WATCH_SECONDS = 240
_SILENT_SECONDS = _WATCH_SECONDS + 30.0
_FIRST_RETRY = 0.2
_GONE = 410


async def follow(
    client: AsyncClient,
    kind: Any,
    cache: Cache[Any],
    *,
    namespace: str = "*",
    labels: Mapping[str, Any] | None = None,
    listing: Callable[[], None] = lambda: None,
) -> None:
    """For ever. `listing` is told each time that everything is listed anew."""
    backoff = Backoff(_FIRST_RETRY)
    position = _Position()
    selection = {"namespace": namespace, "labels": dict(labels or {})}
    while True:
        try:
            if position.version is None:
                listing()
                position.version = await _list(client, kind, cache, selection)
            backoff.reset()
            await _watch(client, kind, cache, position, selection)
        except UNREACHABLE as error:
            if isinstance(error, ApiError) and error.status.code == _GONE:
                position.version = None
            else:
                extra = {"kind": kind.__name__, "error": str(error) or type(error).__name__}
                _log.warning("not watching, tried again soon", extra=extra)
            await asyncio.sleep(backoff.wait())


@dataclass
class _Position:
    """Up to which version the cache is as the server has it; None: of that nothing is known."""

    version: str | None = None


async def _list(client: AsyncClient, kind: Any, cache: Cache[Any], selection: Any) -> str:
    found = client.list(kind, chunk_size=_PAGE, **selection)
    things = [thing async for thing in found]
    version: str = found.resourceVersion
    cache.replace(things, int(version), selection["namespace"])
    return version


async def _watch(
    client: AsyncClient, kind: Any, cache: Cache[Any], position: _Position, selection: Any
) -> None:
    """Until the server, or the way to it, fails."""
    changes: Any = client.watch(
        kind, resource_version=position.version, server_timeout=_WATCH_SECONDS, **selection
    )
    try:
        while True:
            async with asyncio.timeout(_SILENT_SECONDS):
                what, thing = await anext(changes)
            if what == "DELETED":
                cache.drop(thing)
            elif what != "BOOKMARK":
                cache.take(thing)
            position.version = str(version_of(thing))
    finally:
        await changes.aclose()
