"""From a gRPC call to a handler and back: role, errors, the audit log, spans, counting."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from atenet.ateapi import audit, records, tracing
from atenet.ateapi.callers import Access, Caller
from atenet.ateapi.denials import Denials
from atenet.ateapi.failure import CallError
from atenet.ateapi.metrics import Metrics
from atenet.ateapi.mint import CertificateMint, TokenMint
from atenet.ateapi.service.support import RouterSupport
from atenet.ateapi.store import BusyError, Store
from atenet.ateapi.tracing import Tracing
from atenet.ateapi.watch import Watch
from atenet.ateapi.workflows import Context as WorkflowContext
from atenet.ateapi.workflows import Operations
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import egresssupport_pb2 as egress_pb

__all__ = ["BUILT", "Api", "Handler", "generic_handlers"]

_log = logging.getLogger(__name__)
# The contract's, and what people are told beside it.
BUILT: tuple[ServiceDescriptor, ...] = (
    *pb.DESCRIPTOR.services_by_name.values(),
    *egress_pb.DESCRIPTOR.services_by_name.values(),
)
_REFUSALS = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass
class Api:
    """What handlers work with."""

    store: Store
    context: WorkflowContext
    operations: Operations
    watch: Watch
    access: Access
    metrics: Metrics
    support: RouterSupport
    clock: records.Clock
    certificates: CertificateMint | None = None
    tokens: TokenMint | None = None
    denials: Denials | None = None
    tracing: Tracing = field(default_factory=Tracing)
    default_sandbox: str = "process"


Handler = Callable[[Api, Any], Awaitable[Any]]
"""Takes the request, returns the response message (or its serialized bytes). Raises CallError."""


def generic_handlers(
    api: Api, handlers: dict[str, dict[str, Handler]]
) -> list[grpc.GenericRpcHandler[Any, Any]]:
    """All methods of these services, by service name and method; those without a handler answer
    Unimplemented."""
    made = []
    for service in BUILT:
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
    answering = _Answering(api, path, handler or _unbuilt(method.name))
    request_type = message_factory.GetMessageClass(method.input_type)
    return grpc.unary_unary_rpc_method_handler(
        answering.answer,
        request_deserializer=request_type.FromString,
        response_serializer=_serialized,
    )


class _Answering:
    """Answers one method's calls."""

    def __init__(self, api: Api, path: str, handler: Handler) -> None:
        service, _, method = path.rpartition("/")
        service = service.rpartition(".")[2]
        self._api = api
        self._path = path
        self._method = method
        self._handler = handler
        self._metrics = api.metrics.of_method(service, method)
        self._name = f"{service}/{method}"
        self._audited = self._name in audit.AUDITED
        self._mints = self._name in audit.MINTS

    async def answer(self, request: Any, context: Context) -> Any:
        began = time.perf_counter()
        outcome = await self._traced(request, context, _metadata(context))
        failed = outcome if isinstance(outcome, CallError) else None
        code = "OK" if failed is None else failed.code.name
        self._metrics.answered(code, time.perf_counter() - began)
        return outcome if failed is None else await context.abort(failed.code, failed.message)

    async def _traced(self, request: Any, context: Context, metadata: Mapping[str, str]) -> Any:
        if not self._api.tracing.on:
            return await self._settled(request, context, metadata)
        with self._api.tracing.call(self._path, request, metadata) as span:
            outcome = await self._settled(request, context, metadata)
            tracing.ended(span, outcome.code.name if isinstance(outcome, CallError) else "OK")
            return outcome

    async def _settled(self, request: Any, context: Context, metadata: Mapping[str, str]) -> Any:
        """The response, or the CallError that the caller is told."""
        try:
            caller = await self._api.access.admit(context, self._path)
            if not self._audited:
                return await self._handler(self._api, request)
            return await self._with_audit(request, caller, metadata)
        except CallError as e:
            if e.code in _REFUSALS:
                refused = {"method": self._name, "code": e.code.name, "reason": e.message}
                _log.info("call refused", extra=refused)
            return e
        except BusyError as e:
            _log.warning("the store is busy", extra={"method": self._method, "error": str(e)})
            return CallError(grpc.StatusCode.UNAVAILABLE, "the control plane is busy; retry")
        except Exception:  # noqa: BLE001
            # Whatever it was, the caller learns nothing of our insides; the log has it all.
            _log.exception("call failed", extra={"method": self._method})
            return CallError(grpc.StatusCode.INTERNAL, "internal error")

    async def _with_audit(self, request: Any, caller: Caller, metadata: Mapping[str, str]) -> Any:
        trace_id = tracing.trace_id(metadata) or tracing.current_trace_id()
        entry = audit.Pending(caller.subject, self._name, audit.target_of(request), trace_id)
        audit.begin(entry)
        response = await self._handler(self._api, request)
        if self._mints:
            # Nothing was stored, and yet something was given away: not before it is written down.
            record = entry.entry_for(entry.uid, self._api.clock())
            await self._api.store.write(lambda tx: tx.audit.append(record))
        return response


def _metadata(context: Context) -> dict[str, str]:
    """Of the call; of a name that is given twice the last value."""
    given = context.invocation_metadata() or ()
    return {key: value for key, value in given if isinstance(value, str)}


def _unbuilt(method: str) -> Handler:
    async def refuse(_api: Api, _request: Any) -> Any:
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, f"{method} is not built yet")

    return refuse


def _serialized(response: Any) -> bytes:
    return response if isinstance(response, bytes) else response.SerializeToString()
