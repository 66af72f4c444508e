"""Loopback addresses of a test's own.

An actor listens on port 80 and a worker on port 8443, as they do in production; what differs from
test to test is the address. 127.0.0.0/8 is large enough that a random pick is free, and binding it
proves that it is.
"""

import asyncio
import ipaddress
import random
import socket
import struct
from collections.abc import Iterator

# Not 127.0/16 and 127.1/16: a local system on this machine lives there.
_FIRST = int(ipaddress.IPv4Address("127.16.0.1"))
_LAST = int(ipaddress.IPv4Address("127.255.255.254"))
_ATTEMPTS = 20
_random = random.SystemRandom()


def loopback_address() -> str:
    """A random address of 127.16.0.0 and up; nobody promises yet that its ports are free."""
    return str(ipaddress.IPv4Address(_random.randint(_FIRST, _LAST)))


def candidates() -> Iterator[str]:
    """A few random addresses, for code that binds by itself and tries the next one on a clash."""
    for _ in range(_ATTEMPTS):
        yield loopback_address()


def bound_socket(port: int, *, backlog: int = 256, address: str | None = None) -> socket.socket:
    """A listening TCP socket on `port` (0: any) of `address`, or of an address of its own."""
    clash: OSError | None = None
    for pick in [address] if address else candidates():
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        try:
            listener.bind((pick, port))
            listener.listen(backlog)
        except OSError as error:
            listener.close()
            clash = error
            continue
        return listener
    raise RuntimeError(f"no free loopback address with port {port}") from clash


def abort(writer: asyncio.StreamWriter) -> None:
    """Ends a TCP connection with a reset; a transport's own `abort` may still end it with a FIN."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def unused_port(address: str = "127.0.0.1") -> int:
    """A port that was free a moment ago, for programs that cannot be told to pick one."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
