"""Where a client reaches a listener, and how it verifies it."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.pki import ROUTER_NAME

ContextMaker = Callable[[Sequence[str]], ssl.SSLContext]


@dataclass(frozen=True)
class Endpoint:
    """`tls` makes a client's context for a list of ALPN names; None: plaintext."""

    host: str
    port: int
    tls: ContextMaker | None = None
    server_name: str = ROUTER_NAME

    @classmethod
    def parse(cls, address: str, tls: ContextMaker | None = None) -> "Endpoint":
        host, port = address.rsplit(":", 1)
        return cls(host, int(port), tls)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"
