"""From a gRPC call to a handler and back: role, errors, counting."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from atenet.ateapi import records
from atenet.ateapi.callers import Access
from atenet.ateapi.failure import CallError
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.mint import CertificateMint, TokenMint
from atenet.ateapi.store import BusyError, Store
from atenet.ateapi.watch import Watch
from atenet.ateapi.workflows import Context, Operations
from atenet.proto import ateapi_pb2 as pb

__all__ = ["Api", "Handler", "generic_handlers"]

_log = logging.getLogger(__name__)


@dataclass
class Api:
    """What handlers work with."""

    store: Store
    context: Context
    operations: Operations
    watch: Watch
    access: Access
    metrics: Metrics
    clock: records.Clock
    certificates: CertificateMint | None = None
    tokens: TokenMint | None = None


Handler = Callable[[Api, Any], Awaitable[Any]]
"""Takes the request, returns the response message (or its serialized bytes). Raises CallError."""


def generic_handlers(
    api: Api, handlers: dict[str, dict[str, Handler]]
) -> list[grpc.GenericRpcHandler[Any, Any]]:
    """All methods of the contract, by service name and method; those without a handler answer
    Unimplemented."""
    made = []
    for service in pb.DESCRIPTOR.services_by_name.values():
        known = handlers.get(service.name, {})
        methods = {m.name: _method(api, service, m, known.get(m.name)) for m in service.methods}
        unknown = set(known) - set(methods)
        if unknown:
            raise AssertionError(f"{service.name} has no {sorted(unknown)}")
        made.append(grpc.method_handlers_generic_handler(service.full_name, methods))
    return made


def _method(
    api: Api, service: ServiceDescriptor, method: MethodDescriptor, handler: Handler | None
) -> grpc.RpcMethodHandler[Any, Any]:
    path = f"/{service.full_name}/{method.name}"
    answer = _answering(api, service.name, method.name, path, handler or _unbuilt(method.name))
    request_type = message_factory.GetMessageClass(method.input_type)
    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=request_type.FromString,
        response_serializer=_serialized,
    )


def _answering(
    api: Api, service: str, method: str, path: str, handler: Handler
) -> Callable[[Any, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]:
    succeeded = api.metrics.counter(service, method, "OK")

    async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            await api.access.admit(context, path)
            response = await handler(api, request)
        except CallError as e:
            failed = e
        except BusyError as e:
            _log.warning("the store is busy", extra={"method": method, "error": str(e)})
            failed = CallError(grpc.StatusCode.UNAVAILABLE, "the control plane is busy; retry")
        except Exception:  # noqa: BLE001
            # Whatever it was, the caller learns nothing of our insides; the log has it all.
            _log.exception("call failed", extra={"method": method})
            failed = CallError(grpc.StatusCode.INTERNAL, "internal error")
        else:
            succeeded.inc()
            return response
        api.metrics.counter(service, method, failed.code.name).inc()
        return await context.abort(failed.code, failed.message)

    return answer


def _unbuilt(method: str) -> Handler:
    async def refuse(_api: Api, _request: Any) -> Any:
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, f"{method} is not built yet")

    return refuse


def _serialized(response: Any) -> bytes:
    return response if isinstance(response, bytes) else response.SerializeToString()
