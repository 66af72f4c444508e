"""A name server that answers by table, on port 53 of a loopback address of its own."""

import asyncio
import ipaddress
import socket
import struct
from collections import Counter
from typing import cast

from tests.support.addresses import candidates

_A = 1
_NXDOMAIN = 3


class NameServer(asyncio.DatagramProtocol):
    """`names`: for each name its answers in turn, the last one for ever; each a list of IPv4 addresses."""

    def __init__(self) -> None:
        self.address = ""
        self.names: dict[str, list[list[str]]] = {}
        # Questions for addresses, as they were asked.
        self.asked: Counter[str] = Counter()
        # Names of this domain are never answered.
        self.silent = "silent.example"
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def start(cls) -> "NameServer":
        for address in candidates():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setblocking(False)
            try:
                sock.bind((address, 53))
            except OSError:
                sock.close()
                continue
            loop = asyncio.get_running_loop()
            _, server = await loop.create_datagram_endpoint(cls, sock=sock)
            server.address = address
            return server
        raise RuntimeError("no free loopback address for a name server")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        answer = self._answer(data)
        if answer is not None:
            self._transport.sendto(answer, addr)

    def _answer(self, query: bytes) -> bytes | None:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii").lower())
            at += 1 + query[at]
        name, question = ".".join(labels), query[12 : at + 5]
        (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
        known, found = name in self.names, list[str]()
        if kind == _A:
            self.asked[name] += 1
            found = self._next(name)
        if name.endswith(f".{self.silent}"):
            return None
        flags = 0x8180 if known else 0x8180 | _NXDOMAIN
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
        records = [
            struct.pack("!HHHIH", 0xC00C, _A, 1, 0, 4) + ipaddress.IPv4Address(address).packed
            for address in found
        ]
        return head + question + b"".join(records)

    def _next(self, name: str) -> list[str]:
        answers = self.names.get(name, [])
        if len(answers) > 1:
            return answers.pop(0)
        return answers[0] if answers else []

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
