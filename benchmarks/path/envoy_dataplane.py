"""Our Envoy dataplane, with its own decisions or with a constant one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from atenet.router.envoy_api import message_class
from atenet.router.resources.names import ASSIGNMENT

from benchmarks.path.cores import PATH, THREADS
from benchmarks.path.envoy_router import ELSEWHERE
from benchmarks.path.identity import API_NAME, WORKER_ID, BenchIdentity
from benchmarks.path.program import Program, free_port
from benchmarks.path.sides import Side
from benchmarks.path.worker import actor

__all__ = ["constant_program", "constant_side", "our_side"]

_TOP = Path(__file__).resolve().parents[2]
_RESPONSE = "envoy.service.ext_proc.v3.ProcessingResponse"


@contextmanager
def our_side(root: Path, identity: BenchIdentity, api: str, worker: Program) -> Iterator[Side]:
    """Asks the control plane at `api` for each request."""
    with _router(root / "ours", identity, api, ["env"]) as (router, https):
        yield Side("atenet router", https, "", router, worker)


@contextmanager
def constant_side(
    root: Path, identity: BenchIdentity, api: str, worker_ip: str, worker: Program
) -> Iterator[Side]:
    """The same processes and the same Envoy; its decisions are one constant, from a program that reads nothing."""
    port = free_port()
    answer = constant_answer(worker_ip).hex()
    with ExitStack() as stack:
        command = [constant_program(), f"127.0.0.1:{port}", answer]
        service = Program("constant answers", command, cores=PATH, log=root / "constant.log")
        stack.enter_context(service).listens_on(port)
        environment = ["env", f"{ELSEWHERE}={port}"]
        router, https = stack.enter_context(_router(root / "constant", identity, api, environment))
        yield Side("constant ext_proc", https, "", router, worker)


def constant_answer(worker_ip: str) -> bytes:
    """What our decision says of actor 0, as engine/atenet-engine/src/extproc/answer.rs puts it."""
    atespace, name = actor(0).split("/")
    values: dict[str, str | float] = {
        "resume": "none",
        "route_ms": 0.1,
        "atespace": atespace,
        "name": name,
        "actor": actor(0),
        "activation": f"{actor(0)}|constant",
        "authority": f"{worker_ip}:80",
        "worker": f"{worker_ip}:8443",
        "worker_ip": worker_ip,
        "worker_port": "8443",
        "worker_spiffe_id": WORKER_ID,
    }
    response = message_class(_RESPONSE)()
    response.request_headers.SetInParent()
    response.dynamic_metadata.update({ASSIGNMENT: values})
    return bytes(response.SerializeToString())


@contextmanager
def _router(
    directory: Path, identity: BenchIdentity, api: str, environment: list[str]
) -> Iterator[tuple[Program, str]]:
    directory.mkdir()
    ready = directory / "ready.json"
    flags = {
        "--mode": "ingress",
        "--run-envoy": "true",
        "--envoy-concurrency": THREADS,
        "--state-dir": directory,
        "--listen-address": "127.0.0.1",
        **dict.fromkeys(("--port-https", "--port-connect-tls", "--port-xds"), 0),
        **dict.fromkeys(("--port-extproc", "--status-port"), 0),
        "--metrics-listen-addr": "127.0.0.1:0",
        "--envoy-admin-address": "127.0.0.1:0",
        "--ateapi-address": api,
        "--ateapi-server-name": API_NAME,
        "--ateapi-ca-file": identity.services,
        "--ateapi-client-cert": identity.router,
        "--envoy-cert-path": identity.edge,
        "--ingress-client-ca-file": identity.pods,
        "--ingress-allowed-spiffe-ids": "spiffe://cluster.local/ns/bench/sa/client",
        "--upstream-credential-bundle": identity.router,
        "--upstream-trust-bundle": identity.pods,
        "--drain-delay": 0,
        "--ready-file": ready,
        "--log-level": "warning",
    }
    program = [*environment, sys.executable, "-m", "benchmarks.path.envoy_router", "router"]
    command = [*program, *(word for pair in flags.items() for word in pair)]
    log = directory / "router.log"
    with Program("atenet router", command, cores=PATH, log=log) as process:
        process.ready_when(ready.exists)
        yield process, str(json.loads(ready.read_text())["listeners"]["ingress"][0])


def constant_program() -> str:
    """The program of constant answers. Raises RuntimeError when it does not build."""
    build = ["build", "--release", "-q", "-p", "atenet-engine", "--example", "constant_answer"]
    done = subprocess.run(
        [sys.executable, _TOP / "tools" / "toolchain.py", *build, "--message-format=json"],
        cwd=_TOP,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "constant_answer":
            return str(message["executable"])
    raise RuntimeError("cargo built no constant_answer")
