"""As much of a WebSocket client as the demo needs: text both ways, pings answered. Standard library only."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import struct
from typing import IO

from atenet.errors import AteError

__all__ = ["WebSocket"]

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA


class WebSocket:
    """`connection` is used up. Raises AteError when the other end does not switch protocols."""

    def __init__(
        self, connection: http.client.HTTPSConnection, path: str, headers: dict[str, str]
    ) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        connection.connect()
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        for name, value in {**asked, "Sec-WebSocket-Key": key, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        self._socket = connection.sock
        # Unbuffered: what follows the head are frames already.
        self._reader: IO[bytes] = self._socket.makefile("rb")
        status, accepted = self._head()
        digest = hashlib.sha1((key + _GUID).encode(), usedforsecurity=False).digest()
        if status != 101 or accepted != base64.b64encode(digest).decode():
            raise AteError(f"the WebSocket was answered {status}")

    def send(self, text: str) -> None:
        self._frame(_TEXT, text.encode())

    def receive(self) -> str:
        """The next text. Raises AteError when the other end closes."""
        whole = b""
        while True:
            first, second = self._exactly(2)
            length = second & 0x7F
            if length >= 126:
                length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
            content = self._exactly(length)
            kind = first & 0x0F
            if kind == _PING:
                self._frame(_PONG, content)
            elif kind == _CLOSE:
                raise AteError("the WebSocket was closed")
            elif kind != _PONG:
                whole += content
                if first & 0x80:
                    return whole.decode()

    def close(self) -> None:
        self._frame(_CLOSE, struct.pack("!H", 1000))
        self._reader.close()
        self._socket.close()

    def _head(self) -> tuple[int, str]:
        status = int((self._reader.readline().split() or [b"", b"0"])[1])
        accepted = ""
        while (line := self._reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"sec-websocket-accept":
                accepted = value.strip().decode()
        return status, accepted

    def _exactly(self, size: int) -> bytes:
        found = self._reader.read(size)
        if len(found) < size:
            raise AteError("the WebSocket ended")
        return found

    def _frame(self, kind: int, content: bytes) -> None:
        mask = os.urandom(4)
        size = len(content)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        hidden = bytes(byte ^ mask[at % 4] for at, byte in enumerate(content))
        self._socket.sendall(head + mask + hidden)
