"""A WebSocket actor: echoes text and binary, closes with the code it is told to."""

import contextlib

import websockets.asyncio.server as ws
from websockets.exceptions import ConnectionClosed

from tests.support.addresses import bound_socket
from tests.support.origins import ACTOR_PORT


class WebSocketOrigin:
    """HTTP/1.1 upgrades on port 80 of a loopback address of its own."""

    def __init__(self) -> None:
        self.address = ""
        self.request_headers: list[list[tuple[str, str]]] = []
        self.closed_with: list[int | None] = []
        self._server: ws.Server | None = None

    @classmethod
    async def start(cls) -> "WebSocketOrigin":
        origin = cls()
        listener = bound_socket(ACTOR_PORT)
        origin.address = listener.getsockname()[0]
        origin._server = await ws.serve(
            origin._echo, sock=listener, subprotocols=None, ping_interval=None
        )
        return origin

    async def _echo(self, socket: ws.ServerConnection) -> None:
        assert socket.request is not None
        self.request_headers.append(list(socket.request.headers.raw_items()))
        with contextlib.suppress(ConnectionClosed):
            async for message in socket:
                if isinstance(message, str) and message.startswith("close:"):
                    await socket.close(int(message.removeprefix("close:")), "as told")
                    break
                await socket.send(message)
        await socket.wait_closed()
        self.closed_with.append(socket.close_code)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
