"""A host and a port, as flags spell them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

__all__ = ["Address", "loopback_address", "loopback_ipv4", "numeric_address"]


@dataclass(frozen=True)
class Address:
    """Port 0 lets the kernel choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads `host:port`, `[v6]:port` or `:port` (every interface). Raises ValueError."""
        host, separator, port = str(text).rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is not <host>:<port>")
        return cls(host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port))  # noqa: S104

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or _is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def loopback_address(text: str) -> Address:
    """The same, for what nobody outside may reach. Raises ValueError."""
    address = Address.parse(text)
    if not address.is_loopback:
        raise ValueError(
            f"{address} is not a loopback address; it must not be reachable from outside"
        )
    return address


def numeric_address(text: str, default_port: int) -> Address:
    """An IP with or without a port. Raises ValueError."""
    try:
        return Address(str(ipaddress.ip_address(text.strip("[]"))), default_port)
    except ValueError:
        address = Address.parse(text)
    try:
        ipaddress.ip_address(address.host)
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address, with or without :<port>") from None
    return address


def loopback_ipv4(text: str) -> str:
    """An address without a port, for what serves one machine only. Raises ValueError."""
    if ":" in text or not _is_loopback(text):
        raise ValueError(f"{text} is not an IPv4 loopback address")
    return text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
