"""A grpc.aio channel over mutual TLS that is made anew when its certificate files change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from atenet.rpc.keepalive import CLIENT_OPTIONS
from atenet.rpc.material import WatchedMaterial

__all__ = ["MtlsChannel", "mtls_channel"]

# How often the files are looked at, at most; a certificate lives for hours.
_LOOK_SECONDS = 1.0
# What calls in flight on a replaced channel have left.
_RETIRE_SECONDS = 120.0


def mtls_channel(
    address: str,
    *,
    credential: Path,
    roots: Path,
    server_name: str,
    options: Sequence[tuple[str, Any]] = (),
) -> MtlsChannel:
    """A channel to `address` (`host:port`) whose server must prove `server_name` under `roots`.

    To pin a pod by its SPIFFE id, give `identity.spiffe.pod_dns_name(id)`. Raises AteError when
    a file is unusable. Nothing is dialled before the first call.
    """
    return MtlsChannel(address, WatchedMaterial(credential, roots), server_name, tuple(options))


class MtlsChannel:
    """Stands where a `grpc.aio.Channel` is expected: give it to a generated stub."""

    def __init__(
        self,
        address: str,
        material: WatchedMaterial,
        server_name: str,
        options: tuple[tuple[str, Any], ...],
    ) -> None:
        self.address = address
        self._material = material
        self._options = [
            *CLIENT_OPTIONS,
            ("grpc.ssl_target_name_override", server_name),
            *options,
        ]
        self._inner: grpc.aio.Channel | None = None
        self._looked = 0.0
        self._retiring: set[asyncio.Task[None]] = set()

    def current(self) -> grpc.aio.Channel:
        """The channel for calls that start now. Needs the running event loop."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            if self._material.refresh() and self._inner is not None:
                self._retire(self._inner)
                self._inner = None
        if self._inner is None:
            self._inner = self._open()
        return self._inner

    async def close(self, grace: float | None = None) -> None:
        """Closes it; calls in flight have `grace` seconds."""
        for task in self._retiring:
            task.cancel()
        if self._inner is not None:
            await self._inner.close(grace)
            self._inner = None

    async def __aenter__(self) -> MtlsChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> _Rebinding:
        return _Rebinding(self, lambda c: c.unary_unary(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> _Rebinding:
        return _Rebinding(self, lambda c: c.unary_stream(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> _Rebinding:
        return _Rebinding(self, lambda c: c.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> _Rebinding:
        return _Rebinding(self, lambda c: c.stream_stream(method, *args, **kwargs))

    def _open(self) -> grpc.aio.Channel:
        material = self._material.current
        credentials = grpc.ssl_channel_credentials(
            root_certificates=material.roots,
            private_key=material.key,
            certificate_chain=material.chain,
        )
        return grpc.aio.secure_channel(self.address, credentials, options=self._options)

    def _retire(self, channel: grpc.aio.Channel) -> None:
        task = asyncio.get_running_loop().create_task(channel.close(_RETIRE_SECONDS))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


class _Rebinding:
    """One method of a stub: bound to whatever channel is current when it is called."""

    def __init__(self, owner: MtlsChannel, bind: Callable[[grpc.aio.Channel], Any]) -> None:
        self._owner = owner
        self._bind = bind
        self._channel: grpc.aio.Channel | None = None
        self._callable: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        channel = self._owner.current()
        if channel is not self._channel:
            self._channel, self._callable = channel, self._bind(channel)
        return self._callable(*args, **kwargs)
