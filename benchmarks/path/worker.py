"""The worker's end in a process of its own: the real atunnel, with `count` actors that are all the origin.

`python -m benchmarks.path.worker CONFIG COUNT ORIGIN_IP`; ends when its standard input does.
"""

from __future__ import annotations

import sys

from atenet import _engine

__all__ = ["ATESPACE", "actor"]

ATESPACE = "bench"
# The actors' network is this machine's own: an actor is an address in it.
_NETNS = "/proc/self/ns/net"


def actor(number: int) -> str:
    """The name of one of the actors, as a client gives it."""
    return f"{ATESPACE}/agent-{number}"


def _main(config: str, count: int, address: str) -> None:
    tunnel = _engine.Tunnel(config)
    for number in range(count):
        if number == 0:
            tunnel.start()
        atespace, name = actor(number).split("/")
        uid = f"uid-{atespace}-{name}"
        tunnel.activate(atespace, name, uid, netns=_NETNS, address=address)
    print("ready", flush=True)
    sys.stdin.read()
    tunnel.close(0.0)


if __name__ == "__main__":
    try:
        _main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    except KeyboardInterrupt:
        sys.exit(0)
