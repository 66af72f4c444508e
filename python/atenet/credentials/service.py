"""`credprovider.CredentialProvider` for the egress gateway: one caller, one class of URIs."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import grpc
import grpc.aio

from atenet._engine import parse_actor_ref, parse_credential_uri
from atenet.credentials.failure import Denied, NotThere, SecretsError, Unavailable
from atenet.credentials.secrets import Secrets
from atenet.proto import credprovider_pb2 as pb
from atenet.proto import credprovider_pb2_grpc
from atenet.rpc import peer_spiffe_id

__all__ = ["CredentialService"]

_log = logging.getLogger(__name__)
_CODES = {
    NotThere: grpc.StatusCode.NOT_FOUND,
    Denied: grpc.StatusCode.PERMISSION_DENIED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
_ACTOR = re.compile(r"spiffe://substrate-actor\.local/actor/([^/]+/[^/]+)")


class CredentialService(credprovider_pb2_grpc.CredentialProviderServicer):
    """Believes its one caller, the gateway, which actor asks."""

    def __init__(self, secrets: Secrets, *, caller: str, provider_class: str) -> None:
        self._secrets = secrets
        self._caller = caller
        self._class = provider_class

    async def FetchSecret(
        self, request: pb.FetchSecretRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.FetchSecretResponse:
        code = grpc.StatusCode
        if peer_spiffe_id(context) != self._caller:
            await context.abort(code.PERMISSION_DENIED, "only the egress gateway is answered")
        try:
            provider_class, path = parse_credential_uri(request.uri)
        except ValueError as error:
            await context.abort(code.INVALID_ARGUMENT, f"uri: {error}")
        match = _ACTOR.fullmatch(request.actor_spiffe_id)
        try:
            atespace, name = parse_actor_ref(match.group(1) if match else "")
        except ValueError:
            await context.abort(code.INVALID_ARGUMENT, "actor_spiffe_id: is no actor's")
        if provider_class != self._class:
            await context.abort(code.NOT_FOUND, "there is no provider of that class here")
        told = {"actor": f"{atespace}/{name}", "uri": request.uri}
        try:
            secret = await asyncio.to_thread(self._secrets.read, atespace, path)
        except SecretsError as error:
            _log.warning("secret not given", extra={**told, "problem": str(error)})
            await context.abort(_CODES.get(type(error), code.INTERNAL), str(error))
        _log.info("secret given", extra=told)
        return pb.FetchSecretResponse(opaque_bytes=secret)
