"""Our gateway and a peer on the same origin, in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from atenet.identity import LocalIdentity
from atenet.proto import ateapi_pb2 as pb

from benchmarks.egress import Gateway, egress_gateway
from benchmarks.path.cores import LOAD, PATH, busy_seconds
from benchmarks.path.load import Load
from benchmarks.path.turns import Numbers, in_turns
from benchmarks.tunnelled.capture import Capture
from benchmarks.tunnelled.load import requests
from benchmarks.tunnelled.names import NameServer
from benchmarks.tunnelled.origin import NAME, SecureOrigin

__all__ = ["RUNS", "Scene", "Side", "scene", "turns"]

RUNS = 5


@dataclass(frozen=True)
class Side:
    """`port`: where the generator connects; `cpu`: seconds that what is measured has used so far."""

    name: str
    port: int
    cpu: Callable[[], float]


@dataclass(frozen=True)
class Scene:
    """What both sides share, and our side."""

    root: Path
    identity: LocalIdentity
    origin: SecureOrigin
    gateway: Gateway
    ours: Side
    stack: ExitStack

    @property
    def target(self) -> str:
        """What an actor dials."""
        return f"{self.origin.address}:{self.origin.port}"

    @property
    def tunnel(self) -> tuple[Path, Path]:
        """The worker's credential, and what a gateway must chain to."""
        return self.gateway.tunnel, self.identity.trust("service-dns")


@contextmanager
def scene(kind: str) -> Iterator[Scene]:
    """`kind`: of the one rule that the actor has, `https` or `tls_passthrough`."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ate-bench-")))
        identity = LocalIdentity(root / "plane" / "state")
        (root / "plane").mkdir()
        identity.ensure()
        bundle = identity.service_credential("origin", [NAME])
        origin = stack.enter_context(SecureOrigin(root, bundle))
        names = stack.enter_context(NameServer(origin.address))
        gateway = stack.enter_context(
            egress_gateway(
                root / "plane",
                _policy(kind, origin.port),
                origin_roots=identity.trust("service-dns"),
                name_server=names.address,
                cores=PATH,
            )
        )
        target = f"{origin.address}:{origin.port}"
        tunnel = (gateway.tunnel, identity.trust("service-dns"))
        capture = stack.enter_context(Capture(root, "capture", gateway.address, target, tunnel))
        ours = Side("atenet", capture.port, lambda: _cpu(gateway.process))
        yield Scene(root, identity, origin, gateway, ours, stack)


def _policy(kind: str, port: int) -> pb.EgressPolicy:
    policy = pb.EgressPolicy()
    rule = getattr(policy.rules.add(), kind)
    rule.hostnames.append(NAME)
    rule.ports.numbers.append(port)
    return policy


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    used: float = times.user + times.system
    return used


def turns(
    scene: Scene, peer: Side, path: str = "/", *, runs: int = RUNS, connections: int = 32
) -> list[list[Numbers]]:
    """[ours, peer] a round, each warm."""

    def of(side: Side) -> Callable[[], Numbers]:
        def load() -> Load:
            return requests(side.port, scene.origin.port, path, connections=connections)

        return lambda: _observe(side, load)

    for side in (scene.ours, peer):
        requests(side.port, scene.origin.port, path, seconds=1)
    return in_turns([of(scene.ours), of(peer)], runs)


def _observe(side: Side, load: Callable[[], Load]) -> Numbers:
    before, began, busy = side.cpu(), time.monotonic(), busy_seconds(LOAD)
    seen = load()
    used, busy = side.cpu() - before, busy_seconds(LOAD) - busy
    return {
        "rps": seen.rps,
        "mib_per_second": seen.bytes_per_second / (1 << 20),
        "generator_cores": seen.generator_cores,
        "cpu_us_a_request": used / (seen.rps * seen.seconds) * 1e6,
        "cores": used / seen.seconds,
        "load_cores_used": busy / (time.monotonic() - began),
    }
