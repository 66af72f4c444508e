"""A worker whose every answer a test decides: HTTP/2 CONNECT over mTLS on the `h2` package."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from tests.support.addresses import bound_socket
from tests.support.pki import Pki
from tests.support.tunnel_stream import TunnelStream, relay

CONNECT_PORT = 8443
_CHUNK = 65536

Answer = Callable[[TunnelStream], Awaitable[None]]


class WorkerConnection:
    """One TLS connection of the router."""

    def __init__(
        self, worker: "ScriptedWorker", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._worker = worker
        self._reader = reader
        self._writer = writer
        self._streams: dict[int, TunnelStream] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        self.tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        self.said_goaway = False
        self.streams_after_goaway = 0
        self.most_streams = 0
        self._thaw = asyncio.Event()
        self._thaw.set()

    async def serve(self) -> None:
        limit = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS
        if self._worker.max_streams is not None:
            self.h2.local_settings[limit] = self._worker.max_streams
            self.h2.local_settings.acknowledge()
        self.h2.initiate_connection()
        # `h2` would end the connection over a stream too many; a worker refuses that stream alone.
        self.h2.local_settings[limit] = 2**31 - 1
        self.h2.local_settings.acknowledge()
        self.flush()
        try:
            while data := await self._reader.read(_CHUNK):
                await self._thaw.wait()
                for event in self.h2.receive_data(data):
                    self._on_event(event)
                self.flush()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            await self._end()

    def flush(self) -> None:
        if not self._writer.is_closing():
            self._writer.write(self.h2.data_to_send())

    async def drain(self) -> None:
        self.flush()
        await self._writer.drain()

    async def goaway(self, last_stream: int | None = None) -> None:
        """Tells the router to open nothing new here."""
        self.said_goaway = True
        self.h2.close_connection(last_stream_id=last_stream)
        # `h2` believes itself closed after GOAWAY; running streams go on, as they may.
        self.h2.state_machine.state = h2.connection.ConnectionState.SERVER_OPEN
        await self.drain()

    async def frozen(self) -> None:
        """From here on the peer hears nothing, not even a ping's answer; never returns."""
        self._thaw.clear()
        await asyncio.Event().wait()

    def abort(self) -> None:
        """Breaks the connection without a word."""
        self._writer.transport.abort()

    def send_raw(self, data: bytes) -> None:
        """Bytes of the test's own: frames that no library would send."""
        self._writer.write(data)

    def _on_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._open(event)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for stream in self._streams.values():
                stream.on_window()
        elif (known := self._streams.get(getattr(event, "stream_id", 0) or 0)) is not None:
            self._on_stream_event(known, event)

    def _on_stream_event(self, stream: TunnelStream, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            stream.on_data(event.data, event.flow_controlled_length)
        elif isinstance(event, h2.events.StreamEnded):
            stream.on_end()
        elif isinstance(event, h2.events.StreamReset):
            stream.on_reset(int(event.error_code))

    def _open(self, event: h2.events.RequestReceived) -> None:
        if self.h2.open_inbound_streams > (self._worker.max_streams or 2**31):
            self.h2.reset_stream(event.stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        headers = {str(name): str(value) for name, value in event.headers}
        stream = TunnelStream(self, event.stream_id, headers)
        self._streams[event.stream_id] = stream
        self.streams_after_goaway += self.said_goaway
        self.most_streams = max(self.most_streams, self.h2.open_inbound_streams)
        self._worker.tunnels.append(stream)
        task = asyncio.create_task(self._answer(stream))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, stream: TunnelStream) -> None:
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            await self._worker.answer(stream)

    async def _end(self) -> None:
        for stream in self._streams.values():
            stream.on_reset(int(h2.errors.ErrorCodes.CANCEL))
        for task in list(self._answers):
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class ScriptedWorker:
    """Counts connections and tunnels; `answer` says what happens to a CONNECT."""

    def __init__(self, answer: Answer, max_streams: int | None) -> None:
        self.answer = answer
        self.max_streams = max_streams
        self.connections: list[WorkerConnection] = []
        self.tunnels: list[TunnelStream] = []
        self.ip = ""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls,
        pki: Pki,
        answer: Answer,
        *,
        max_streams: int | None = None,
        credential: Path | None = None,
        ip: str | None = None,
    ) -> "ScriptedWorker":
        worker = cls(answer, max_streams)
        listener = bound_socket(CONNECT_PORT, address=ip)
        worker.ip = listener.getsockname()[0]
        worker._server = await asyncio.start_server(
            worker._accept, sock=listener, ssl=pki.worker_server(credential)
        )
        return worker

    @property
    def open_tunnels(self) -> list[TunnelStream]:
        return [tunnel for tunnel in self.tunnels if not tunnel.closed]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = WorkerConnection(self, reader, writer)
        self.connections.append(connection)
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        # Only `close` cancels, and Python 3.11's streams cannot stand a cancelled task.
        with contextlib.suppress(asyncio.CancelledError):
            await connection.serve()

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in self.connections:
            connection.abort()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None


def relaying(address: str) -> Answer:
    """Opens every tunnel and relays it to the actor at `address`, as a healthy worker does."""

    async def answer(stream: TunnelStream) -> None:
        await relay(stream, address)

    return answer


async def stale(stream: TunnelStream) -> None:
    """The actor is not here (any more)."""
    await stream.respond(421, [("x-ate-assignment-stale", "true")], end=True)
