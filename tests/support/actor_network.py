"""An actor's private network, as a worker makes it: two namespaces joined by a veth pair.

Every actor has the same inner addresses; only the namespaces keep actors apart.
"""

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from atenet import _engine

GATEWAY = "169.254.17.1"
ACTOR = "169.254.17.2"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=10)


class ActorNetwork:
    """The gateway's and the actor's namespace; names are unique to the run."""

    def __init__(self) -> None:
        token = secrets.token_hex(4)
        self.gateway_name = f"t{token}-gw"
        self.actor_name = f"t{token}-ac"

    @property
    def netns(self) -> str:
        """The path of the namespace that the worker dials from."""
        return f"/run/netns/{self.gateway_name}"

    def up(self) -> None:
        for name in (self.gateway_name, self.actor_name):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        peer = ("peer", "name", "eth0", "netns", self.actor_name)
        _ip("-n", self.gateway_name, "link", "add", "atside", "type", "veth", *peer)
        for name, link, address in (
            (self.gateway_name, "atside", GATEWAY),
            (self.actor_name, "eth0", ACTOR),
        ):
            _ip("-n", name, "address", "add", f"{address}/30", "dev", link)
            _ip("-n", name, "link", "set", link, "up")

    def down(self) -> None:
        for name in (self.gateway_name, self.actor_name):
            if Path("/run/netns", name).exists():
                _ip("netns", "delete", name)

    def new_socket(self) -> socket.socket:
        """A socket inside the actor's namespace."""
        return socket.socket(fileno=_engine.socket_in_netns(f"/run/netns/{self.actor_name}"))

    @contextmanager
    def silent(self, port: int) -> Iterator[None]:
        """A port that answers no SYN: its accept queue is full."""
        with ExitStack() as stack:
            stack.enter_context(self.listen(port, backlog=0))
            # A queue of length 0 holds one connection; the others wait for ever.
            for _ in range(3):
                filler = socket.socket(fileno=_engine.socket_in_netns(self.netns))
                stack.enter_context(filler).connect_ex((ACTOR, port))
            yield

    def listen(
        self, port: int = 80, *, receive_buffer: int = 0, backlog: int = 1024
    ) -> socket.socket:
        """The actor's server socket."""
        listener = self.new_socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        listener.bind((ACTOR, port))
        listener.listen(backlog)
        return listener


@contextmanager
def actor_network() -> Iterator[ActorNetwork]:
    network = ActorNetwork()
    try:
        network.up()
        yield network
    finally:
        network.down()
