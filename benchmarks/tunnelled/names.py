"""A name server for the bench: every name leads to one address."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from types import TracebackType
from typing import Self

__all__ = ["NameServer"]

_A = 1


class NameServer:
    """Answers on a thread of its own while the block lasts."""

    def __init__(self, answer: str) -> None:
        self._packed = ipaddress.IPv4Address(answer).packed
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(1500)
            if not query:
                return
            self._socket.sendto(self._answered(query), client)

    def _answered(self, query: bytes) -> bytes:
        end = query.index(0, 12) + 5
        (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
        found = [self._packed] if kind == _A else []
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
        records = [struct.pack("!HHHIH", 0xC00C, _A, 1, 600, 4) + packed for packed in found]
        return head + query[12:end] + b"".join(map(bytes.__add__, records, found))
