"""An egress gateway of its own for a measure: a real process, beside a real control plane with one running actor."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import psutil
from atenet.identity import LocalIdentity, credential, spiffe
from atenet.identity.authority import Usage
from atenet.identity.credential import Want
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc

from benchmarks.control_plane import WarmControlPlane, warm_control_plane
from benchmarks.path.program import on_cores, until

__all__ = ["Gateway", "egress_gateway", "set_policy", "worker_credential"]

_ACTOR = pb.ObjectRef(atespace="bench", name="a0")


@dataclass(frozen=True)
class Gateway:
    """`tls`: a worker's context with the actor's tunnel certificate, for `server_name`."""

    address: tuple[str, int]
    process: psutil.Process
    tls: ssl.SSLContext
    identity: LocalIdentity
    tunnel: Path  # key and chain of that certificate
    server_name: str = spiffe.EGRESS_SERVER_NAME

    @property
    def resident_mib(self) -> float:
        resident: int = self.process.memory_info().rss
        return resident / (1 << 20)


@contextlib.contextmanager
def egress_gateway(
    root: Path,
    policy: pb.EgressPolicy,
    *,
    origin_roots: Path | None = None,
    name_server: str | None = None,
    cores: Collection[int] = (),
) -> Iterator[Gateway]:
    """Runs while the block lasts; loopback origins may be dialled. `cores`: the gateway's, a thread for each."""
    with warm_control_plane(root, 1) as plane:
        set_policy(plane, policy)
        file, ready = root / "egress.yaml", root / "egress-ready.json"
        file.write_text(json.dumps(_file(plane, origin_roots, len(cores) or None)))
        command = [Path(sys.executable).with_name("atenet"), "agentgateway", "-f", file]
        flags = ["--bind-address", "127.0.0.1", "--egress-allow-cidr", "127.0.0.0/8"]
        flags += [] if name_server is None else ["--egress-name-server", name_server]
        placed = on_cores(cores) if cores else []
        process = subprocess.Popen(
            [*placed, *map(str, command), *flags, "--ready-file", str(ready)],
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: ready.exists() or process.poll() is not None, "the egress gateway")
            bound = json.loads(ready.read_text())["listeners"]["tunnels"][0]
            host, port = bound.rsplit(":", 1)
            tunnel = worker_credential(plane.identity, root)
            tls = _worker(plane.identity, tunnel)
            running = psutil.Process(process.pid)
            yield Gateway((host, int(port)), running, tls, plane.identity, tunnel)
        finally:
            process.kill()
            process.wait()


def set_policy(plane: WarmControlPlane, policy: pb.EgressPolicy) -> None:
    person = plane.identity.credential("cli", spiffe.CLI_ID).read_bytes()
    roots = plane.identity.trust("service-dns").read_bytes()
    credentials = grpc.ssl_channel_credentials(roots, person, person)
    options = [("grpc.ssl_target_name_override", spiffe.API_SERVER_NAME)]
    policy.metadata.CopyFrom(pb.ResourceMetadata(atespace=_ACTOR.atespace, name="default"))
    with grpc.secure_channel(plane.address, credentials, options=options) as channel:
        request = pb.CreateActorEgressPolicyRequest(actor=_ACTOR, egress_policy=policy)
        ateapi_pb2_grpc.ControlStub(channel).CreateActorEgressPolicy(request, timeout=20)


def worker_credential(identity: LocalIdentity, root: Path) -> Path:
    """The tunnel certificate of the actor's worker, with its key."""
    name = spiffe.worker_for_actor_id(_ACTOR.atespace, _ACTOR.name)
    bundle = root / "tunnel.pem"
    issued = credential.issue(Want(name, (), (Usage.CLIENT,)), identity.authority("actor-identity"))
    bundle.write_bytes(issued)
    return bundle


def _worker(identity: LocalIdentity, bundle: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(identity.trust("service-dns")))
    context.load_cert_chain(bundle)
    return context


def _file(
    plane: WarmControlPlane, origin_roots: Path | None, threads: int | None
) -> dict[str, object]:
    identity = plane.identity
    pod = str(identity.credential("atenet-egress", spiffe.EGRESS_ID))
    edge = str(identity.service_credential("atenet-egress", [spiffe.EGRESS_SERVER_NAME]))
    tls = {"cert": pod, "key": pod, "root": str(identity.trust("service-dns"))}
    backend = {"backendTLS": {**tls, "hostname": spiffe.API_SERVER_NAME}}
    control = {"host": plane.address, "policies": backend}
    origins = {} if origin_roots is None else {"root": str(origin_roots)}
    backends = [{"dynamic": {}, "policies": {"backendTLS": origins}}]
    route = [{"policies": {"substrateEgress": control}, "backends": backends}]
    ca = identity.root / "ca"
    authority = {
        "mode": "dynamicCa",
        "cert": str(ca / "egress-mitm.crt"),
        "key": str(ca / "egress-mitm.key"),
    }
    clients = str(identity.trust("actor-identity"))
    tunnels = {
        "name": "tunnels",
        "protocol": "HTTPS",
        "tls": {"cert": edge, "key": edge, "root": clients},
    }
    return {
        "config": {
            "statsAddr": "127.0.0.1:0",
            "readinessAddr": "127.0.0.1:0",
            **({} if threads is None else {"workerThreads": threads}),
        },
        "frontendPolicies": {"substrateEgressActorResolution": control},
        "binds": [
            {"port": 0, "tunnelProtocol": "connect", "listeners": [tunnels]},
            {
                "mode": "internal",
                "protocol": "AUTO",
                "listeners": [
                    {"protocol": "HTTPS", "tls": authority, "routes": route},
                    {"protocol": "HTTP", "routes": route},
                    {"protocol": "TLS", "tcpRoutes": [{"backends": [{"dynamic": {}}]}]},
                ],
            },
        ],
    }
