"""P-20: what our decisions cost egress on Envoy: requests per second, over the same Envoy with a constant ext_proc.

Both cleartext and interception are taken; the value is the lesser of the two ratios. One actor's tunnels carry requests
one after the other; the policy comes from the real control plane and is kept as by default.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from atenet.identity import credential, spiffe
from atenet.identity.authority import Authority, Usage
from atenet.identity.credential import Want
from atenet.proto import ateapi_pb2 as pb
from atenet.router.envoy_api import message_class
from atenet.router.resources.egress.names import VERDICT

from benchmarks.control_plane import ROOT, WarmControlPlane, warm_control_plane
from benchmarks.egress import set_policy, worker_credential
from benchmarks.path.against_envoy import versions
from benchmarks.path.compared import SETUP
from benchmarks.path.cores import LOAD, PATH, THREADS
from benchmarks.path.envoy_dataplane import constant_program
from benchmarks.path.envoy_router import ELSEWHERE
from benchmarks.path.origin import Origin
from benchmarks.path.program import Program, free_port, on_cores
from benchmarks.path.turns import Numbers, in_turns, median
from benchmarks.result import Outcome

__all__ = ["take"]

_TUNNELS, _SECONDS = 16, 4
_HOST = "origin.bench.example"
_RESPONSE = "envoy.service.ext_proc.v3.ProcessingResponse"


def take() -> Outcome:
    busy = os.getloadavg()[0]
    with ExitStack() as stack:
        bench = stack.enter_context(_bench())
        ours = stack.enter_context(_gateway(bench, "ours", ["env"]))
        taken = {}
        for kind, port in (("cleartext", 80), ("interception", bench.secure_port)):
            peer = stack.enter_context(_constant(bench, kind, port))
            taken[kind] = in_turns([_loads(bench, ours, port), _loads(bench, peer, port)])
    ratios = {kind: _ratio(rounds) for kind, rounds in taken.items()}
    least = min(ratios, key=lambda kind: ratios[kind])
    return Outcome(
        value=ratios[least],
        ours=median(taken[least], 0, "rps"),
        peer=median(taken[least], 1, "rps"),
        peer_name="constant ext_proc",
        runs=[
            {"value": ours["rps"] / peer["rps"], "ours": ours, "peer": peer}
            for ours, peer in taken[least]
        ],
        versions=versions(),
        also={
            "setup": SETUP,
            "taken here": least,
            "ratios": ratios,
            "requests per second": {
                kind: {"ours": median(rounds, 0, "rps"), "peer": median(rounds, 1, "rps")}
                for kind, rounds in taken.items()
            },
            "tunnels": _TUNNELS,
            "load average before": busy,
        },
    )


def _loads(bench: _Bench, gateway: str, port: int) -> Callable[[], Numbers]:
    plan = {
        "gateway": gateway,
        "server_name": spiffe.EGRESS_SERVER_NAME,
        "roots": str(bench.identity.trust("service-dns")),
        "credential": str(bench.tunnel),
        "target": f"192.0.2.1:{port}",
        "host": _HOST,
        "inside_roots": None if port == 80 else str(bench.roots),
        "tunnels": _TUNNELS,
    }

    def take_one() -> Numbers:
        given = json.dumps(plan | {"seconds": _SECONDS})
        command = [*on_cores(LOAD), sys.executable, "-m", "benchmarks.path.egress_load", given]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT, text=True)
        seen: Numbers = json.loads(done.stdout)
        return seen

    return take_one


def _ratio(rounds: list[list[Numbers]]) -> float:
    return statistics.median(ours["rps"] / peer["rps"] for ours, peer in rounds)


class _Bench:
    """The world that both gateways share."""

    def __init__(self, root: Path, plane: WarmControlPlane, origin: Origin) -> None:
        self.root, self.plane, self.origin = root, plane, origin
        self.identity = plane.identity
        self.authority = Authority.create("interception")
        self.key, self.roots = root / "interception.key", root / "interception.crt"
        self.authority.save(self.roots, self.key)
        self.tunnel = worker_credential(plane.identity, root)
        self.secure_port = free_port()
        self.name_server = ""
        self.origin_roots = root / "origins.pem"
        self.served = root / "origin.pem"
        origins = Authority.create("origins")
        origins.save(self.origin_roots, root / "origins.key")
        self.served.write_bytes(credential.issue(Want(None, (_HOST,), (Usage.SERVER,)), origins))


@contextmanager
def _bench() -> Iterator[_Bench]:
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ate-bench-")))
        plane = stack.enter_context(warm_control_plane(root / "plane", 1, front="off"))
        origin = stack.enter_context(Origin(root))
        policy = pb.EgressPolicy()
        for rule in (policy.rules.add().http, policy.rules.add().https):
            rule.hostnames.append("*")
            rule.ports.all.SetInParent()
        set_policy(plane, policy)
        bench = _Bench(root, plane, origin)
        stack.enter_context(_secure(bench))
        bench.name_server = stack.enter_context(_names(origin.address))
        stack.enter_context(_mint(bench))
        yield bench


@contextmanager
def _secure(bench: _Bench) -> Iterator[None]:
    """The same answer over TLS, for interception."""
    config = bench.root / "secure.conf"
    config.write_text(
        f"daemon off; user root root; worker_processes 1; pid {bench.root}/secure.pid;\n"
        f"error_log {bench.root}/secure.log crit; events {{ worker_connections 8192; }}\n"
        "http { access_log off; tcp_nodelay on; keepalive_requests 100000000;\n"
        + "".join(
            f" {kind}_temp_path {bench.root}/s-{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f" server {{ listen {bench.origin.address}:{bench.secure_port} ssl;\n"
        f"  ssl_certificate {bench.served}; ssl_certificate_key {bench.served};\n"
        '  default_type text/plain; location = / { return 200 "ok"; } } }\n'
    )
    command = ["/usr/sbin/nginx", "-c", config]
    with Program("nginx (TLS)", command, cores=LOAD, log=bench.root / "secure.out") as nginx:
        nginx.listens_on(bench.secure_port, bench.origin.address)
        yield


class _Names(socketserver.BaseRequestHandler):
    """Every name has the origin's address, and no other kind of record."""

    def handle(self) -> None:
        query, reply = self.request
        end = 12 + query[12:].index(b"\0") + 5
        is_a = query[end - 4 : end - 2] == b"\x00\x01"
        answer = query[:2] + b"\x81\x80\0\1\0" + bytes([is_a]) + b"\0\0\0\0" + query[12:end]
        if is_a:
            address = socket.inet_aton(self.server.origin)  # type: ignore[attr-defined]
            answer += b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + address
        reply.sendto(answer, self.client_address)


@contextmanager
def _names(origin: str) -> Iterator[str]:
    with socketserver.ThreadingUDPServer(("127.0.0.1", 0), _Names) as server:
        server.origin = origin  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def _mint(bench: _Bench) -> Iterator[None]:
    ready = bench.root / "mint.json"
    files = [word for file in (bench.roots, bench.key) for word in ("--ca-pool-path", file)]
    command = [Path(sys.executable).with_name("atenet"), "sdsmint", *files]
    command += ["--uds-path", bench.root / "sds.sock", "--ready-file", ready]
    with Program("sdsmint", command, cores=LOAD, log=bench.root / "mint.log") as process:
        process.ready_when(ready.exists)
        yield


@contextmanager
def _constant(bench: _Bench, kind: str, origin_port: int) -> Iterator[str]:
    """The same processes and the same Envoy; its decisions are one constant, from a program that reads nothing."""
    port = free_port()
    answer = message_class(_RESPONSE)()
    answer.request_headers.SetInParent()
    values = {
        "tunnel": "constant",
        "chain": "tls",
        "actor": "bench/a0",
        "atespace": "bench",
        "name": "a0",
        "dialled": "192.0.2.1:80",
        "host": _HOST,
        "rule": "0",
        "address": bench.origin.address,
        "port": str(origin_port),
        "server_name": _HOST,
        "certificate_name": _HOST,
    }
    answer.dynamic_metadata.update({VERDICT: values})
    with ExitStack() as stack:
        command = [constant_program(), f"127.0.0.1:{port}", answer.SerializeToString().hex()]
        log = bench.root / f"constant-{kind}.log"
        service = Program("constant answers", command, cores=PATH, log=log)
        stack.enter_context(service).listens_on(port)
        environment = ["env", f"{ELSEWHERE}={port}"]
        yield stack.enter_context(_gateway(bench, f"constant-{kind}", environment))


@contextmanager
def _gateway(bench: _Bench, name: str, environment: list[str]) -> Iterator[str]:
    directory = bench.root / name
    directory.mkdir()
    ready, identity = directory / "ready.json", bench.identity
    pod = identity.credential("atenet-egress", spiffe.EGRESS_ID)
    flags: dict[str, Any] = {
        "--mode": "egress",
        "--run-envoy": "true",
        "--envoy-concurrency": THREADS,
        "--state-dir": directory,
        "--listen-address": "127.0.0.1",
        **dict.fromkeys(("--port-tunnels", "--port-xds", "--port-extproc", "--status-port"), 0),
        "--metrics-listen-addr": "127.0.0.1:0",
        "--envoy-admin-address": "127.0.0.1:0",
        "--ateapi-address": bench.plane.address,
        "--ateapi-ca-file": identity.trust("service-dns"),
        "--ateapi-client-cert": pod,
        "--envoy-cert-path": identity.service_credential(
            "atenet-egress", [spiffe.EGRESS_SERVER_NAME]
        ),
        "--actor-identity-ca-file": identity.trust("actor-identity"),
        "--origin-ca-file": bench.origin_roots,
        "--sdsmint-socket": bench.root / "sds.sock",
        "--egress-allow-cidr": "127.0.0.0/8",
        "--egress-name-server": bench.name_server,
        "--drain-delay": 0,
        "--ready-file": ready,
        "--log-level": "warning",
    }
    program = [*environment, sys.executable, "-m", "benchmarks.path.envoy_egress", "router"]
    command = [*program, *(word for pair in flags.items() for word in pair)]
    with Program(name, command, cores=PATH, log=directory / "router.log") as process:
        process.ready_when(ready.exists)
        yield str(json.loads(ready.read_text())["listeners"]["tunnels"][0])
