"""The cluster's DNS: Services as the API server has them, and origins by table. On UDP and TCP, port 53."""

from __future__ import annotations

import ipaddress
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping

_A, _NXDOMAIN = 1, 3
_DOMAIN = ".svc.cluster.local"


class ClusterNames:
    """`service`: the addresses of a Service by namespace and name; none: there is no such one."""

    def __init__(
        self,
        address: str,
        service: Callable[[str, str], list[str]],
        others: Mapping[str, str],
    ) -> None:
        self._service = service
        self._others = others
        names = self

        class Datagram(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                data, sock = self.request
                sock.sendto(names.answer(data), self.client_address)

        class Stream(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while head := self.rfile.read(2):
                    answer = names.answer(self.rfile.read(int.from_bytes(head, "big")))
                    self.wfile.write(len(answer).to_bytes(2, "big") + answer)

        self._servers = [
            socketserver.ThreadingUDPServer((address, 53), Datagram),
            socketserver.ThreadingTCPServer((address, 53), Stream),
        ]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii").lower())
            at += 1 + query[at]
        (kind,) = struct.unpack("!H", query[at + 1 : at + 3])
        found = self._find(".".join(labels))
        answers = found if kind == _A else []
        flags = 0x8580 if found else 0x8580 | _NXDOMAIN
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(answers), 0, 0)
        records = [
            struct.pack("!HHHIH", 0xC00C, _A, 1, 5, 4) + ipaddress.IPv4Address(each).packed
            for each in answers
        ]
        return head + query[12 : at + 5] + b"".join(records)

    def _find(self, name: str) -> list[str]:
        if name in self._others:
            return [self._others[name]]
        if not name.endswith(_DOMAIN):
            return []
        service, _, namespace = name.removesuffix(_DOMAIN).partition(".")
        return self._service(namespace, service) if namespace and "." not in namespace else []

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
