"""An actor that reads with another HTTP/1.1 library, and remembers what that library made of it."""

import asyncio
from dataclasses import dataclass

import h11

from tests.support.addresses import bound_socket
from tests.support.origins import ACTOR_PORT


@dataclass(frozen=True)
class Message:
    """A whole request."""

    method: bytes
    target: bytes
    body: bytes


def read_all(data: bytes) -> tuple[list[Message], str | None]:
    """Every whole request in these bytes, and why reading stopped before their end, if it did."""
    found: list[Message] = []
    while data.strip(b"\r\n"):
        reader = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        reader.receive_data(data)
        try:
            message = _next(reader)
        except h11.RemoteProtocolError as error:
            return found, str(error)
        if message is None:
            return found, "incomplete"
        found.append(message)
        data = reader.trailing_data[0]
    return found, None


def _next(reader: h11.Connection) -> Message | None:
    head, body = None, b""
    while True:
        event = reader.next_event()
        if isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return Message(head.method, head.target, body)
        else:
            return None


class H11Origin:
    """Serves port 80 of a loopback address; one request a connection."""

    def __init__(self) -> None:
        self.address = ""
        self.messages: list[Message] = []
        # What the library refused, with the bytes.
        self.refused: list[tuple[str, bytes]] = []
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls) -> "H11Origin":
        origin = cls()
        listener = bound_socket(ACTOR_PORT)
        origin.address = listener.getsockname()[0]
        origin._server = await asyncio.start_server(origin._serve, sock=listener)
        return origin

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        try:
            while piece := await reader.read(1 << 16):
                data += piece
                messages, problem = read_all(data)
                if problem not in (None, "incomplete"):
                    self.refused.append((problem or "", data))
                    return
                if messages:
                    self.messages += messages
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
                    )
                    await writer.drain()
                    return
        except OSError:
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
