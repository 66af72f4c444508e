"""What a worker asks its node's agent about its actors: certificates and policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio

from atenet.errors import AteError
from atenet.proto import ateapi_pb2, atelet_pb2, atelet_pb2_grpc
from atenet.worker.ingress import Incarnation

__all__ = ["Agent", "AgentCallError", "NodeAgent"]

_CALL_SECONDS = 5.0


class AgentCallError(AteError):
    """The agent, or the control plane behind it, refused or could not be reached."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Agent(Protocol):
    async def mint(self, actor: Incarnation, request: bytes) -> list[bytes]:
        """A chain (DER, leaf first) for the key of this DER request. Raises AgentCallError."""

    async def policies(
        self, known: Sequence[ateapi_pb2.KnownEgressPolicy]
    ) -> list[ateapi_pb2.PresentEgressPolicy]:
        """What there is now; actors that are not hosted here are left out. Raises AgentCallError."""


class NodeAgent:
    """Over the agent's Unix socket."""

    def __init__(self, socket: Path) -> None:
        options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.min_reconnect_backoff_ms", 100)]
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=options)
        self._stub = atelet_pb2_grpc.WorkerSupportStub(self._channel)

    async def mint(self, actor: Incarnation, request: bytes) -> list[bytes]:
        asked = atelet_pb2.MintActorCertificateRequest(
            actor_atespace=actor.atespace,
            actor_name=actor.name,
            actor_uid=actor.uid,
            certificate_signing_request=request,
        )
        answer = await _call(self._stub.MintActorCertificate, asked)
        return list(answer.actor_certificates)

    async def policies(
        self, known: Sequence[ateapi_pb2.KnownEgressPolicy]
    ) -> list[ateapi_pb2.PresentEgressPolicy]:
        asked = atelet_pb2.GetActorEgressPoliciesRequest(known=known)
        return list((await _call(self._stub.GetActorEgressPolicies, asked)).present)

    async def close(self) -> None:
        await self._channel.close(None)


async def _call(method: Any, request: Any) -> Any:
    try:
        return await method(request, timeout=_CALL_SECONDS)
    except grpc.aio.AioRpcError as e:
        raise AgentCallError(e.code(), f"node agent: {e.details()}") from e
