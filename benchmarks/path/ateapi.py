"""The real control plane on SQLite, with one worker and actors that run on it.

The node agent is ours: it says yes to everything, once, so that the actors run; atunnel is real and elsewhere.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.proto import atelet_pb2, atelet_pb2_grpc
from atenet.rpc import mtls_channel, mtls_server

from benchmarks.path.cores import LOAD
from benchmarks.path.identity import API_NAME, BenchIdentity
from benchmarks.path.program import Program, free_port
from benchmarks.path.worker import actor

__all__ = ["ateapi"]

_NODE, _POOL, _TEMPLATE = "bench", "bench", "nothing"
# Nobody sends heartbeats: the worker must not count as lost before the measure ends.
_TIMEOUT = "600s"


@contextmanager
def ateapi(
    root: Path, identity: BenchIdentity, worker_ip: str, actors: int = 1
) -> Iterator[Program]:
    """`ateapi serve`, in which `actors` actors run on the worker at this address.

    It listens on the address in the file `ateapi.address` of `root`.
    """
    address, ready = f"127.0.0.1:{free_port()}", root / "ateapi.ready"
    local = LocalIdentity(root / "identity")
    command = [
        *(Path(sys.executable).with_name("ateapi"), "serve"),
        *("--listen", address, "--stats-listen", "127.0.0.1:0"),
        *("--store", root / "ate.db", "--snapshots", root / "snapshots"),
        *("--server-credential", identity.api),
        *("--client-credential", local.credential("ateapi", spiffe.API_ID)),
        *("--client-roots", identity.pods, "--node-roots", identity.pods),
        *("--worker-timeout", _TIMEOUT, "--node-timeout", _TIMEOUT),
        *("--ready-file", ready),
    ]
    with Program("ateapi", command, cores=LOAD, log=root / "ateapi.log") as program:
        program.ready_when(ready.exists)
        asyncio.run(_furnish(local, address, worker_ip, actors))
        (root / "ateapi.address").write_text(address)
        yield program


class _Agent(atelet_pb2_grpc.AteletServicer):
    """Hosts nothing, and says that it does."""

    async def Run(self, request: Any, context: Any) -> Any:
        return atelet_pb2.RunResponse()

    async def Restore(self, request: Any, context: Any) -> Any:
        return atelet_pb2.RestoreResponse()


async def _furnish(local: LocalIdentity, address: str, worker_ip: str, actors: int) -> None:
    agent = local.credential("atelet", spiffe.ATELET_ID, node=_NODE)
    served = mtls_server("127.0.0.1:0", credential=agent, client_roots=local.trust("pod-identity"))
    atelet_pb2_grpc.add_AteletServicer_to_server(_Agent(), served.server)
    await served.server.start()
    try:
        worker = pb.Worker(
            metadata=pb.ResourceMetadata(name="bench-worker"),
            worker_namespace="default",
            worker_pool=_POOL,
            node_name=_NODE,
            status=pb.WorkerStatus(state=pb.WORKER_STATE_ACTIVE),
            ips=[worker_ip],
            epoch=1,
            node_endpoint=served.address,
        )
        async with _channel(local, address, agent) as channel:
            await pb_grpc.WorkerServiceStub(channel).RegisterWorker(
                pb.RegisterWorkerRequest(worker=worker, capacity=pb.WorkerResources(actors=actors))
            )
        async with _channel(local, address, local.credential("cli", spiffe.CLI_ID)) as channel:
            await _wake(pb_grpc.ControlStub(channel), actors)
    finally:
        await served.server.stop(0)


def _channel(local: LocalIdentity, address: str, credential: Path) -> Any:
    roots = local.trust("service-dns")
    return mtls_channel(address, credential=credential, roots=roots, server_name=API_NAME)


async def _wake(control: Any, actors: int) -> None:
    atespace = actor(0).partition("/")[0]
    space = pb.Atespace(metadata=pb.ResourceMetadata(name=atespace))
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=space))
    template = pb.ActorTemplate(
        metadata=pb.ResourceMetadata(atespace=atespace, name=_TEMPLATE),
        containers=[pb.Container(name="main", command=["/bin/true"])],
    )
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=template))
    for number in range(actors):
        name = actor(number).partition("/")[2]
        made = pb.Actor(
            metadata=pb.ResourceMetadata(atespace=atespace, name=name),
            actor_template=pb.ObjectRef(atespace=atespace, name=_TEMPLATE),
        )
        await control.CreateActor(pb.CreateActorRequest(actor=made))
        ref = pb.ObjectRef(atespace=atespace, name=name)
        await control.ResumeActor(pb.ResumeActorRequest(actor=ref))
