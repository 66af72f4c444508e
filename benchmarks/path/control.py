"""A control plane that answers ResumeActor from memory: every actor runs on one worker.

`python -m benchmarks.path.control ADDRESS WORKER_IP SPIFFE_ID API_BUNDLE ROOTS`
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import grpc.aio
from atenet.proto import ateapi_pb2 as pb

__all__ = ["answer", "serve"]

Resume = Callable[[pb.ResumeActorRequest, grpc.aio.ServicerContext], Awaitable[bytes]]  # type: ignore[type-arg]


def answer(atespace: str, name: str, worker_ip: str, spiffe_id: str, *, resumed: bool) -> bytes:
    """The wire form of a ResumeActorResponse of an actor that runs on the worker."""
    assignment = pb.WorkerAssignment(
        worker_namespace="default",
        worker_pool="bench",
        worker_pod="bench-worker",
        worker_pod_uid="bench-worker",
        worker_pod_ips=[worker_ip],
        worker=pb.ObjectRef(name="bench-worker"),
        node_name="bench",
        worker_epoch=1,
        worker_spiffe_id=spiffe_id,
    )
    metadata = pb.ResourceMetadata(
        atespace=atespace, name=name, uid=f"uid-{atespace}-{name}", version=1
    )
    status = pb.ActorStatus(state=pb.ACTOR_STATE_RUNNING, worker_assignment=assignment)
    actor = pb.Actor(metadata=metadata, status=status)
    return pb.ResumeActorResponse(actor=actor, resumed=resumed).SerializeToString()


async def serve(address: str, resume: Resume, credential: bytes, roots: bytes) -> grpc.aio.Server:
    """Serves over mutual TLS on `address`, `host:port`."""
    credentials = grpc.ssl_server_credentials(
        [(credential, credential)], root_certificates=roots, require_client_auth=True
    )
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    # Bytes on the way out: no message is made and serialised twice.
    method = grpc.unary_unary_rpc_method_handler(
        resume, request_deserializer=pb.ResumeActorRequest.FromString
    )
    service = grpc.method_handlers_generic_handler("ateapi.Control", {"ResumeActor": method})
    server.add_generic_rpc_handlers([service])
    server.add_secure_port(address, credentials)
    await server.start()
    return server


async def _main(
    address: str, worker_ip: str, spiffe_id: str, credential: bytes, roots: bytes
) -> None:
    async def resume(request: pb.ResumeActorRequest, _: object) -> bytes:
        actor = request.actor
        return answer(actor.atespace, actor.name, worker_ip, spiffe_id, resumed=False)

    server = await serve(address, resume, credential, roots)
    await server.wait_for_termination()


if __name__ == "__main__":
    try:
        address, ip, spiffe_id, credential, roots = sys.argv[1:]
        own, trusted = Path(credential).read_bytes(), Path(roots).read_bytes()
        asyncio.run(_main(address, ip, spiffe_id, own, trusted))
    except KeyboardInterrupt:
        sys.exit(0)
