"""An origin that speaks HTTP/2 over TLS and nothing else; it tells each request's path and authority."""

import asyncio
import contextlib
import json
import ssl

import h2.config
import h2.connection
import h2.events


class H2Origin:
    """On any port of 127.0.0.1."""

    def __init__(self) -> None:
        self.port = 0
        self.requests = 0
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls, tls: ssl.SSLContext) -> "H2Origin":
        origin = cls()
        tls.set_alpn_protocols(["h2"])
        origin._server = await asyncio.start_server(origin._serve, "127.0.0.1", 0, ssl=tls)
        origin.port = origin._server.sockets[0].getsockname()[1]
        return origin

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
            if chosen == "h2":
                await self._converse(reader, writer)
        writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            asked: dict[int, dict[str, str]] = {}
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    asked[event.stream_id or 0] = dict(event.headers or [])  # type: ignore[arg-type]
            for stream, fields in asked.items():
                self.requests += 1
                told = {"path": fields[":path"], "authority": fields[":authority"]}
                connection.send_headers(stream, [(":status", "200")])
                connection.send_data(stream, json.dumps(told).encode(), end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
