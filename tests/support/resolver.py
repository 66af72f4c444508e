"""A resolver of the node's: UDP and TCP on one address, answers by table, cut where UDP cannot hold them."""

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from typing import cast

from tests.support.addresses import candidates
from tests.support.dns_message import A, encoded

_NXDOMAIN, _SERVFAIL = 3, 2
# Without EDNS; with it the resolver is as generous as the client.
_PLAIN = 512


class Resolver(asyncio.DatagramProtocol):
    """`records`: data by name and kind."""

    def __init__(self) -> None:
        self.address = ""
        self.records: dict[tuple[str, int], list[bytes]] = {}
        self.asked: Counter[str] = Counter()
        self.streams = 0
        self.code: int | None = None
        self.silent = False
        self._transport: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls) -> "Resolver":
        loop = asyncio.get_running_loop()
        for address in candidates():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setblocking(False)
            try:
                sock.bind((address, 0))
                port = sock.getsockname()[1]
                _, made = await loop.create_datagram_endpoint(cls, sock=sock)
                made._server = await asyncio.start_server(made._converse, address, port)
            except OSError:
                sock.close()
                continue
            made.address = f"{address}:{port}"
            return made
        raise RuntimeError("no free address for a resolver")

    def put(self, name: str, address: str) -> None:
        self.records[name, A] = [socket.inet_aton(address)]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        if self.silent:
            self.asked[_question(data)[0]] += 1
            return
        limit = struct.unpack("!H", data[-8:-6])[0] if data[10:12] != b"\0\0" else _PLAIN
        self._transport.sendto(self._answer(data, limit), addr)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.streams += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length = struct.unpack("!H", await reader.readexactly(2))[0]
                answer = self._answer(await reader.readexactly(length), 65535)
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
        writer.close()

    def _answer(self, query: bytes, limit: int) -> bytes:
        name, kind, end = _question(query)
        self.asked[name] += 1
        found = self.records.get((name.lower(), kind), [])
        known = any(known == name.lower() for known, _ in self.records)
        code = self.code if self.code is not None else (0 if known else _NXDOMAIN)
        found = [] if self.code else found
        records = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data for data in found
        )
        flags, count = 0x8180 | code, len(found)
        if 12 + (end - 12) + len(records) > limit:
            flags, count, records = flags | 0x0200, 0, b""
        return query[:2] + struct.pack("!5H", flags, 1, count, 0, 0) + query[12:end] + records

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        if self._server is not None:
            self._server.close()


def txt(size: int) -> list[bytes]:
    """TXT records of so many bytes together."""
    return [b"\xfa" + b"x" * 250 for _ in range(size // 251)]


def _question(query: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    name = ".".join(labels)
    assert encoded(name) == query[12 : at + 1]
    return name, struct.unpack("!H", query[at + 1 : at + 3])[0], at + 5
