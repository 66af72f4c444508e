"""All handlers by service, and the server that serves them."""

from __future__ import annotations

import grpc.aio
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from atenet.ateapi.service import (
    actors,
    atespaces,
    denials,
    minting,
    nodes,
    policies,
    support,
    templates,
    workers,
)
from atenet.ateapi.service.dispatch import BUILT, Api, Handler, generic_handlers
from atenet.ateapi.service.introspection import Health, Reflection

__all__ = ["HANDLERS", "SERVICES", "add_services"]

HANDLERS: dict[str, dict[str, Handler]] = {
    "Control": {
        **atespaces.HANDLERS,
        **templates.HANDLERS,
        **actors.HANDLERS,
        **policies.HANDLERS,
        **minting.CONTROL_HANDLERS,
        **workers.HANDLERS,
    },
    "WorkerService": {
        **nodes.HANDLERS,
        **minting.NODE_HANDLERS,
        **policies.NODE_HANDLERS,
    },
    "EgressSupport": denials.HANDLERS,
}

SERVICES = tuple(service.full_name for service in BUILT)


def add_services(server: grpc.aio.Server, api: Api) -> Health:
    """Adds the contract, what routers are told, health and reflection. Health says NOT_SERVING until it is told."""
    contract = generic_handlers(api, HANDLERS)
    server.add_generic_rpc_handlers((*contract, api.support.handler()))
    health = Health(api.access, SERVICES)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    names = (*SERVICES, support.SERVICE, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(
        Reflection(api.access, names), server
    )
    return health
