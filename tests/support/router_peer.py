"""The router as atunnel meets it: a client with a certificate that opens CONNECT tunnels."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from h2.connection import ConnectionInputs, ConnectionState

from tests.support.endpoint import Endpoint
from tests.support.pki import Pki
from tests.support.raw_h2 import RawH2, Stream
from tests.support.raw_http1 import RawHttp1

STALE = "x-ate-assignment-stale"


def client_context(pki: Pki, credential: Path | None, alpn: Sequence[str]) -> ssl.SSLContext:
    """TLS as the router speaks it: the worker is known by its chain, not by a DNS name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(pki.pod_roots)
    if credential is not None:
        context.load_cert_chain(credential)
    context.set_alpn_protocols(list(alpn))
    return context


def endpoint(address: str, pki: Pki, credential: Path | None) -> Endpoint:
    return Endpoint.parse(address, lambda alpn: client_context(pki, credential, alpn))


def connect_fields(
    actor: str | None, authority: str, *more: tuple[str, str]
) -> list[tuple[str, str]]:
    named = [] if actor is None else [("ate-target-actor", actor)]
    return [(":method", "CONNECT"), (":authority", authority), *named, *more]


def connect_head(actor: str | None, authority: str) -> bytes:
    """The same for HTTP/1.1."""
    named = "" if actor is None else f"ate-target-actor: {actor}\r\n"
    return f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n{named}\r\n".encode()


class RouterPeer:
    """One HTTP/2 connection to atunnel."""

    def __init__(self, h2: RawH2) -> None:
        self.h2 = h2

    async def request(self, actor: str | None, port: int | str = 80, early: bytes = b"") -> Stream:
        """A CONNECT, with bytes right behind it, and its answer's head."""
        stream = await self.h2.start(connect_fields(actor, f"10.0.0.1:{port}"), end=False)
        await self.send(stream, early)
        return await self.h2.head(stream)

    async def open(self, actor: str, port: int = 80, early: bytes = b"") -> Stream:
        """An open tunnel."""
        stream = await self.request(actor, port, early)
        assert stream.status == 200, (stream.headers, bytes(stream.data))
        return stream

    async def receive(self, stream: Stream, size: int) -> bytes:
        """Exactly `size` bytes of a tunnel."""
        await self.h2.wait(lambda: len(stream.data) >= size or stream.over)
        taken = bytes(stream.data[:size])
        assert len(taken) == size, f"the tunnel ended after {taken!r} (reset {stream.reset})"
        del stream.data[:size]
        return taken

    async def send(self, stream: Stream, data: bytes, *, end: bool = False) -> None:
        """Bytes for the actor, as the windows allow, also after the actor's own end."""
        h2, view = self.h2.h2, memoryview(data)
        while view:
            room = min(h2.local_flow_control_window(stream.id), h2.max_outbound_frame_size)
            if room == 0:
                await self.h2.wait(lambda: h2.local_flow_control_window(stream.id) > 0)
                continue
            h2.send_data(stream.id, bytes(view[:room]))
            view = view[room:]
            await self.h2.flush()
        if end:
            h2.end_stream(stream.id)
            await self.h2.flush()

    async def ended(self, stream: Stream) -> None:
        """Until the actor's clean end."""
        await self.h2.wait(lambda: stream.over)
        assert stream.ended, f"no clean end: reset {stream.reset}"

    async def was_reset(self, stream: Stream) -> int:
        """Until the tunnel is reset; the code."""
        await self.h2.wait(lambda: stream.over)
        assert stream.reset is not None, "it ended cleanly where a reset was due"
        return stream.reset


@asynccontextmanager
async def router_peer(
    address: str, pki: Pki, *, credential: Path | None = None, read_all: bool = True
) -> AsyncIterator[RouterPeer]:
    where = endpoint(address, pki, credential or pki.router)
    async with await RawH2.open(where, read_all=read_all) as h2:
        _survive_goaway(h2)
        yield RouterPeer(h2)


def _survive_goaway(h2: RawH2) -> None:
    """`h2` takes any GOAWAY for the end; the protocol lets running streams go on."""
    machine = h2.h2.state_machine
    key = (ConnectionState.CLIENT_OPEN, ConnectionInputs.RECV_GOAWAY)
    machine._transitions = {**machine._transitions, key: (None, ConnectionState.CLIENT_OPEN)}


@asynccontextmanager
async def http1_peer(address: str, pki: Pki) -> AsyncIterator[RawHttp1]:
    async with await RawHttp1.open(endpoint(address, pki, pki.router)) as wire:
        yield wire


def handshake(address: str, context: ssl.SSLContext, *, server_name: str | None = None) -> str:
    """A whole handshake and one request, blocking; the status line. OSError when it is refused.

    In TLS 1.3 a client learns only by reading whether its certificate was taken.
    """
    host, port = address.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=server_name, suppress_ragged_eofs=False) as wire,
    ):
        wire.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = wire.recv(4096)
        with contextlib.suppress(OSError):
            wire.unwrap()
    return answer.split(b"\r\n", 1)[0].decode()
