"""One activation's network: two namespaces, a veth between them, and no way out but the capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atenet.worker.network import command, firewall, netns
from atenet.worker.network.firewall import Capturing

__all__ = ["ACTOR_ADDRESS", "GATEWAY_ADDRESS", "NetworkPair", "build", "demolish"]

ACTOR_ADDRESS = "169.254.17.2"
GATEWAY_ADDRESS = "169.254.17.1"
_PREFIX_LENGTH = 30
_GATEWAY_LINK = "atside"
_ACTOR_LINK = "eth0"
_GATEWAY_SUFFIX = "-at"

# Written before any link exists, so that no link ever has an IPv6 address. Forwarding is set
# because a new namespace inherits it from the host.
_SEALED = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/ip_forward": "0",
}
# The actor has no capability and must be able to listen on port 80.
_ANY_PORT = {"net/ipv4/ip_unprivileged_port_start": "0"}


@dataclass(frozen=True)
class NetworkPair:
    """Serves one activation and is never used again: what an actor left in it dies with it."""

    name: str

    @property
    def runtime(self) -> str:
        """The namespace that the actor lives in."""
        return self.name

    @property
    def gateway(self) -> str:
        """The supervisor's end: connections to the actor are opened from here."""
        return self.name + _GATEWAY_SUFFIX

    @property
    def runtime_path(self) -> Path:
        return netns.path_of(self.runtime)

    @property
    def gateway_path(self) -> Path:
        return netns.path_of(self.gateway)


def build(name: str, capturing: Capturing | None = None) -> NetworkPair:
    """Makes the pair. Blocks for some ms. Raises AteError and leaves nothing when a step fails.

    While nobody listens on the capture port, and on port 53, what is sent there is refused.
    """
    pair = NetworkPair(name)
    try:
        with netns.own_namespace_kept():
            netns.create(pair.runtime)
            _configure(_SEALED | _ANY_PORT)
            netns.create(pair.gateway)
            _configure(_SEALED)
            command.run(["ip", "-batch", "-"], _gateway_links(pair))
            ends = (_GATEWAY_LINK, ACTOR_ADDRESS, GATEWAY_ADDRESS)
            firewall.load(firewall.rules(*ends, capturing or Capturing()))
            netns.enter(pair.runtime)
            command.run(["ip", "-batch", "-"], _actor_links())
    except BaseException:
        demolish(pair)
        raise
    return pair


def demolish(pair: NetworkPair) -> None:
    """Removes both namespaces, and with them the veth and the rules. Repeatable."""
    netns.remove(pair.gateway)
    netns.remove(pair.runtime)


def _gateway_links(pair: NetworkPair) -> str:
    # Both ends are created where they belong: moving one later waits for the kernel's link lock.
    return "\n".join(
        (
            f"link add {_GATEWAY_LINK} type veth peer name {_ACTOR_LINK} netns {pair.runtime}",
            f"addr add {GATEWAY_ADDRESS}/{_PREFIX_LENGTH} dev {_GATEWAY_LINK}",
            "link set lo up",
            f"link set {_GATEWAY_LINK} up\n",
        )
    )


def _actor_links() -> str:
    return "\n".join(
        (
            "link set lo up",
            f"addr add {ACTOR_ADDRESS}/{_PREFIX_LENGTH} dev {_ACTOR_LINK}",
            f"link set {_ACTOR_LINK} up",
            f"route add default via {GATEWAY_ADDRESS}\n",
        )
    )


def _configure(settings: dict[str, str]) -> None:
    """Writes sysctls of the calling thread's namespace."""
    for key, value in settings.items():
        path = Path("/proc/sys") / key
        # A kernel without IPv6 has nothing to switch off.
        if path.exists() or not key.startswith("net/ipv6/"):
            path.write_text(value)
