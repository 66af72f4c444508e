"""All handlers by service, and the server that serves them."""

from __future__ import annotations

from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from atenet.ateapi.service import actors, atespaces, nodes, templates, workers
from atenet.ateapi.service.dispatch import Api, Handler, generic_handlers
from atenet.proto import ateapi_pb2 as pb
from atenet.rpc import MtlsServer

__all__ = ["HANDLERS", "SERVICES", "add_services"]

HANDLERS: dict[str, dict[str, Handler]] = {
    "Control": {
        **atespaces.HANDLERS,
        **templates.HANDLERS,
        **actors.HANDLERS,
        **workers.HANDLERS,
    },
    "WorkerService": nodes.HANDLERS,
}

SERVICES = tuple(s.full_name for s in pb.DESCRIPTOR.services_by_name.values())


def add_services(server: MtlsServer, api: Api) -> HealthServicer:
    """Adds the contract, health and reflection. The health servicer is there to be set."""
    server.server.add_generic_rpc_handlers(tuple(generic_handlers(api, HANDLERS)))
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server.server)
    names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server.server)
    return health
