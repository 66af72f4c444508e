"""Our path: `atenet agentgateway`, atunnel, and a control plane that answers from memory."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from atenet.identity import spiffe

from benchmarks.path.cores import LOAD, PATH, THREADS
from benchmarks.path.identity import API_NAME, WORKER_ID, BenchIdentity
from benchmarks.path.program import Program, free_port
from benchmarks.path.sides import Side

__all__ = ["our_path", "router", "worker", "worker_address"]


def worker_address() -> str:
    """A loopback address of its own: atunnel's port is the same on every worker."""
    return f"127.{random.randint(16, 250)}.{random.randint(0, 250)}.1"


@contextmanager
def our_path(
    root: Path,
    identity: BenchIdentity,
    origin: str,
    *,
    actors: int = 1,
    cache_ttl: str = "5s",
) -> Iterator[Side]:
    """The whole path to `actors` actors, all of them the origin. `cache_ttl`: the product's default."""
    with ExitStack() as stack:
        ip = worker_address()
        far = stack.enter_context(worker(root, identity, ip, origin, actors))
        api = f"127.0.0.1:{free_port()}"
        control = [sys.executable, "-m", "benchmarks.path.control", api, ip, WORKER_ID]
        answers = Program(
            "control plane", [*control, identity.api, identity.pods],
            cores=LOAD, log=root / "control.log",
        )  # fmt: skip
        stack.enter_context(answers).listens_on(int(api.rpartition(":")[2]))
        near, bound = stack.enter_context(router(root, identity, api, cache_ttl=cache_ttl))
        yield Side("atenet", bound["https"], bound["http"], near, far, bound["stats"])


@contextmanager
def worker(
    root: Path, identity: BenchIdentity, ip: str, origin: str, actors: int
) -> Iterator[Program]:
    """atunnel on port 8443 of `ip`."""
    config = {
        "listen": f"{ip}:8443",
        "credentials": {"cert": str(identity.worker), "key": str(identity.worker)},
        "trust_bundle": str(identity.pods),
        "allowed_client": spiffe.ROUTER_ID,
        "threads": THREADS,
    }
    words = ["-m", "benchmarks.path.worker", json.dumps(config), actors, origin]
    log = root / "atunnel.log"
    with Program("atunnel", [sys.executable, *map(str, words)], cores=PATH, log=log) as program:
        program.ready_when(lambda: b"ready" in log.read_bytes())
        yield program


@contextmanager
def router(
    root: Path,
    identity: BenchIdentity,
    api: str,
    *,
    cache_ttl: str = "5s",
    parking: dict[str, object] | None = None,
    flags: Sequence[str] = (),
) -> Iterator[tuple[Program, dict[str, str]]]:
    """The router process, and its addresses `http`, `https` and `stats`."""
    file, ready = root / "agentgateway.json", root / "agentgateway.ready"
    file.write_text(json.dumps(_document(identity, api, cache_ttl, parking or {})))
    ready.unlink(missing_ok=True)
    program = Path(sys.executable).with_name("atenet")
    command = [program, "agentgateway", "-f", file, "--bind-address", "127.0.0.1", *flags]
    log = root / "agentgateway.log"
    with Program(
        "atenet agentgateway",
        [*command, "--ready-file", ready],
        cores=PATH,
        log=log,
        keep_log=False,
    ) as process:
        process.ready_when(ready.exists)
        said = json.loads(ready.read_text())
        bound = {name: said["listeners"][name][0] for name in ("http", "https")}
        yield process, {**bound, "stats": said["stats"]}


def _document(
    identity: BenchIdentity, api: str, cache_ttl: str, parking: dict[str, object]
) -> dict[str, object]:
    edge = {"cert": str(identity.edge), "key": str(identity.edge)}
    pod = {"cert": str(identity.router), "key": str(identity.router)}
    to_api = {**pod, "root": str(identity.services), "hostname": API_NAME}
    to_workers = {**pod, "root": str(identity.pods), "insecureHost": True}
    tunnel = {
        "proxy": {"backend": "/workers"},
        "mode": "connect",
        "policies": {"backendTLS": to_workers},
    }
    ingress = {
        "host": api,
        "policies": {"backendTLS": to_api},
        "cacheTtl": cache_ttl,
        "requestParking": parking,
    }
    return {
        "config": {
            "statsAddr": "127.0.0.1:0",
            "readinessAddr": "127.0.0.1:0",
            "workerThreads": THREADS,
            "connectionMinTerminationDeadline": "0s",
            "connectionTerminationDeadline": "2m",
        },
        "gateways": {"http": {"port": 0}, "https": {"port": 0, "tls": edge}},
        "routes": [
            {
                "gateways": ["http", "https"],
                "policies": {"substrateIngress": ingress},
                "backends": [{"backend": "/workers"}],
            }
        ],
        "backends": [
            {"name": "workers", "dynamic": {}, "policies": {"backendTunnel": tunnel}},
        ],
    }
