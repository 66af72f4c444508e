"""The node's resolvers, as its resolv.conf or a flag names them. Pure: text in, text out."""

from __future__ import annotations

import ipaddress

__all__ = ["name_servers", "resolver_address"]

_PORT = 53


def resolver_address(text: str) -> str:
    """`address` or `address:port` as `address:port`, IPv6 in brackets. Raises ValueError."""
    try:
        return _join(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")), _PORT)
    except ValueError:
        host, separator, port = text.rpartition(":")
        if not separator or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError("must be an address or address:port") from None
        return _join(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")), int(port))


def name_servers(resolv_conf: str) -> list[str]:
    """The resolvers that a resolv.conf names, as address:port, in its order."""
    found = []
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                found.append(resolver_address(words[1].partition("%")[0]))
            except ValueError:
                continue
    return found


def _join(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
