"""A raw HTTP/2 client on the `h2` package, with its courtesies switched off."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from tests.support.endpoint import Endpoint
from tests.support.raw_http1 import LIMIT, RawHttp1

Fields = Sequence[tuple[str, str]]

_FRAME_HEAD = 9


class StreamResetError(ConnectionError):
    """The peer reset the stream."""

    def __init__(self, code: int) -> None:
        super().__init__(f"stream reset, code {code}")
        self.code = code


@dataclass
class Stream:
    """What has arrived on one stream; `changed` tells when more does."""

    id: int
    headers: list[tuple[str, str]] | None = None
    interim: list[list[tuple[str, str]]] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    trailers: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False
    reset: int | None = None
    # What has arrived and was not given back to the peer's window.
    unacknowledged: int = 0

    @property
    def status(self) -> int:
        return int(self.get(":status") or "0")

    def get(self, name: str) -> str | None:
        return dict(self.headers or []).get(name)

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class RawH2:
    """One connection. `read_all=False` leaves windows as they are: a reader that does not read."""

    def __init__(self, wire: RawHttp1, *, read_all: bool = True) -> None:
        self._wire = wire
        self._read_all = read_all
        self._streams: dict[int, Stream] = {}
        self._changed = asyncio.Condition()
        self.goaway: int | None = None
        self.closed = False
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=True,
                header_encoding="latin-1",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=False,
            )
        )
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, endpoint: Endpoint, *, read_all: bool = True) -> Self:
        """ALPN h2 on a TLS endpoint, prior knowledge on a plaintext one."""
        return await cls.over(await RawHttp1.open(endpoint, alpn=("h2",)), read_all=read_all)

    @classmethod
    async def over(cls, wire: RawHttp1, *, read_all: bool = True) -> Self:
        """HTTP/2 on a connection that is open, such as a CONNECT tunnel."""
        connection = cls(wire, read_all=read_all)
        connection.h2.initiate_connection()
        await connection.flush()
        return connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def flush(self) -> None:
        await self._wire.send(self.h2.data_to_send())

    async def start(self, fields: Fields, *, end: bool = True) -> Stream:
        """Opens a stream with these fields as they are, pseudo ones first."""
        stream = Stream(self.h2.get_next_available_stream_id())
        self._streams[stream.id] = stream
        self.h2.send_headers(stream.id, list(fields), end_stream=end)
        await self.flush()
        return stream

    async def send(self, stream: Stream, data: bytes, *, end: bool = False) -> None:
        """Data, as the peer's windows allow."""
        view = memoryview(data)
        while len(view) > 0:
            if stream.reset is not None:
                return
            room = min(
                self.h2.local_flow_control_window(stream.id), self.h2.max_outbound_frame_size
            )
            if room == 0:
                await self.wait(
                    lambda: (
                        self.h2.local_flow_control_window(stream.id) > 0 or stream.reset is not None
                    )
                )
                if self.closed:
                    return
                continue
            piece, view = view[:room], view[room:]
            self.h2.send_data(stream.id, bytes(piece), end_stream=end and not view)
            await self.flush()
        if end and not data:
            self.h2.end_stream(stream.id)
            await self.flush()

    async def send_trailers(self, stream: Stream, fields: Fields) -> None:
        self.h2.send_headers(stream.id, list(fields), end_stream=True)
        await self.flush()

    async def reset(self, stream: Stream) -> None:
        self.h2.reset_stream(stream.id, h2.errors.ErrorCodes.CANCEL)
        await self.flush()

    async def send_raw(self, data: bytes) -> None:
        """Frames that no library would write."""
        await self._wire.send(data)

    async def wait(self, condition, limit: float = LIMIT) -> None:  # type: ignore[no-untyped-def]
        async with asyncio.timeout(limit), self._changed:
            await self._changed.wait_for(lambda: condition() or self.closed)

    async def response(self, stream: Stream) -> Stream:
        """Until the stream is over; StreamResetError when it was reset or the connection broke."""
        await self.wait(lambda: stream.over)
        if stream.reset is not None or not stream.ended:
            raise self._reset(stream)
        return stream

    async def head(self, stream: Stream) -> Stream:
        """Until the final response head."""
        await self.wait(lambda: stream.headers is not None or stream.over)
        if stream.headers is None:
            raise self._reset(stream)
        return stream

    def _reset(self, stream: Stream) -> ConnectionError:
        """What ended the stream: a reset, a GOAWAY, or nothing that HTTP/2 knows."""
        if stream.reset is None and self.goaway is None:
            return ConnectionError("the connection ended without a word of HTTP/2")
        return StreamResetError(stream.reset if stream.reset is not None else -1)

    async def ask(self, fields: Fields, body: bytes | None = None) -> Stream:
        stream = await self.start(fields, end=body is None)
        if body is not None:
            await self.send(stream, body, end=True)
        return await self.response(stream)

    async def _read(self) -> None:
        buffer = bytearray()
        try:
            while data := await self._wire.reader.read(1 << 18):
                buffer += data
                # Frame by frame: what follows a GOAWAY in the same read must not meet a closed `h2`.
                for frame in _whole_frames(buffer):
                    for event in self.h2.receive_data(frame):
                        self._on_event(event)
                await self.flush()
                await self._tell()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.closed = True
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _on_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.last_stream_id
            # `h2` believes itself closed now; running streams go on, as the protocol says they may.
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
            return
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if stream is None:
            return
        match event:
            case h2.events.InformationalResponseReceived():
                stream.interim.append(_text(event.headers))
            case h2.events.ResponseReceived():
                stream.headers = _text(event.headers)
            case h2.events.DataReceived():
                self._on_data(stream, event)
            case h2.events.TrailersReceived():
                stream.trailers = _text(event.headers)
            case h2.events.StreamEnded():
                stream.ended = True
            case h2.events.StreamReset():
                stream.reset = int(event.error_code)
            case _:
                pass

    def _on_data(self, stream: Stream, event: h2.events.DataReceived) -> None:
        stream.data += event.data
        if self._read_all and event.flow_controlled_length:
            self.h2.acknowledge_received_data(event.flow_controlled_length, stream.id)

    async def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
                self.h2.close_connection()
                await self.flush()
        await self._wire.close()
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)


def _whole_frames(buffer: bytearray) -> Iterator[bytes]:
    """Takes every whole frame off the front of the buffer."""
    while len(buffer) >= _FRAME_HEAD:
        length = _FRAME_HEAD + int.from_bytes(buffer[:3], "big")
        if len(buffer) < length:
            return
        frame = bytes(buffer[:length])
        del buffer[:length]
        yield frame


def _text(fields: Sequence[tuple[str | bytes, str | bytes]]) -> list[tuple[str, str]]:
    return [
        (
            k if isinstance(k, str) else k.decode("latin-1"),
            v if isinstance(v, str) else v.decode("latin-1"),
        )
        for k, v in fields
    ]


def get(
    path: str, actor: str, *more: tuple[str, str], authority: str = "app.example"
) -> list[tuple[str, str]]:
    """The fields of a GET to an actor."""
    return fields("GET", path, actor, *more, authority=authority)


def fields(
    method: str,
    path: str,
    actor: str,
    *more: tuple[str, str],
    authority: str = "app.example",
    scheme: str = "https",
) -> list[tuple[str, str]]:
    pseudo = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)]
    return [*pseudo, ("ate-target-actor", actor), *more]
