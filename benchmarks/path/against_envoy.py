"""What the measures against Envoy share: both paths up and warm, and rounds in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atenet.router.binary import find_envoy

from benchmarks.machine import said
from benchmarks.path.envoys import envoy_path
from benchmarks.path.load import Load, wrk
from benchmarks.path.ours import our_path
from benchmarks.path.sides import Side
from benchmarks.path.turns import Bench, Numbers, bench, in_turns, observe

__all__ = ["PEER", "both", "rounds", "versions"]

PEER = "two Envoys"


@contextmanager
def both() -> Iterator[tuple[Bench, Side, Side]]:
    """The bench, our path and Envoy's, each of which has carried some requests."""
    with bench() as made:
        ours = made.stack.enter_context(our_path(made.root, made.identity, made.origin.address))
        peer = made.stack.enter_context(envoy_path(made.root, made.identity, made.origin.address))
        for side in (ours, peer):
            wrk(f"https://{side.https}/", seconds=1)
        yield made, ours, peer


def rounds(
    ours: Side, peer: Side, load: Callable[[str], Load], path: str = "/", runs: int = 5
) -> list[list[Numbers]]:
    """In turns, over HTTPS: [ours, peer] a round."""

    def of(side: Side) -> Callable[[], Numbers]:
        return lambda: observe(side, lambda: load(f"https://{side.https}{path}"))

    return in_turns([of(ours), of(peer)], runs)


def versions() -> dict[str, str]:
    """Of what took part."""
    return {
        "envoy": said([str(find_envoy(None)), "--version"]).rpartition("version:")[2].strip(),
        "nginx": said(["/usr/sbin/nginx", "-v"]),
        "wrk": said(["wrk", "-v"]).partition(" [")[0],
        "h2load": said(["h2load", "--version"]),
    }
