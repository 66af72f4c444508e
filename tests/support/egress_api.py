"""The control plane and the credential provider that an egress gateway asks: real servers, scripted answers."""

import asyncio
import uuid
from collections import Counter
from typing import Any

import grpc
import grpc.aio
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import credprovider_pb2 as cred
from atenet.proto import credprovider_pb2_grpc
from google.protobuf.json_format import ParseDict

from tests.support.fake_ateapi import FakeAteapi
from tests.support.pki import API_NAME, Pki


class EgressApi(FakeAteapi):
    """GetActor, GetActorEgressPolicy and MintActorJWT by table. What is not there is NotFound."""

    def __init__(self, pki: Pki) -> None:
        super().__init__(pki)
        self.actors: dict[str, pb.Actor] = {}
        self.policies: dict[str, pb.EgressPolicy] = {}
        # Method -> the status that its next calls get, by actor.
        self.failing: dict[tuple[str, str], grpc.StatusCode] = {}
        self.asked: Counter[tuple[str, str]] = Counter()
        # Readings of an actor's policy are answered, with what was there when they came, once this is set.
        self.gates: dict[str, asyncio.Event] = {}
        self.tokens: list[pb.MintActorJWTRequest] = []

    def put(self, actor: str, *, state: str = "RUNNING", created: int = 0) -> pb.Actor:
        """An actor of a new uid."""
        atespace, name = actor.split("/")
        put = pb.Actor(metadata=pb.ResourceMetadata(atespace=atespace, name=name, version=1))
        put.metadata.uid = str(uuid.uuid4())
        put.metadata.create_time.seconds = created
        put.status.state = pb.ActorState.Value(f"ACTOR_STATE_{state}")
        self.actors[actor] = put
        return put

    def allow(self, actor: str, *rules: dict[str, Any]) -> None:
        """Replaces the actor's policy."""
        before = self.policies.get(actor)
        policy = ParseDict({"rules": list(rules)}, pb.EgressPolicy())
        policy.metadata.name = "default"
        policy.metadata.uid = before.metadata.uid if before else str(uuid.uuid4())
        policy.metadata.version = before.metadata.version + 1 if before else 1
        self.policies[actor] = policy

    async def _find(
        self, method: str, ref: pb.ObjectRef, table: dict[str, Any], context: Any
    ) -> Any:
        actor = f"{ref.atespace}/{ref.name}"
        self.asked[method, actor] += 1
        if code := self.failing.get((method, actor)):
            await context.abort(code, "scripted")
        if actor not in table:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
        return table[actor]

    async def GetActor(
        self, request: pb.GetActorRequest, context: grpc.aio.ServicerContext
    ) -> pb.Actor:
        found: pb.Actor = await self._find("GetActor", request.actor, self.actors, context)
        return found

    async def GetActorEgressPolicy(
        self, request: pb.GetActorEgressPolicyRequest, context: grpc.aio.ServicerContext
    ) -> pb.EgressPolicy:
        method = "GetActorEgressPolicy"
        found: pb.EgressPolicy = await self._find(method, request.actor, self.policies, context)
        if gate := self.gates.get(f"{request.actor.atespace}/{request.actor.name}"):
            await gate.wait()
        return found

    async def MintActorJWT(
        self, request: pb.MintActorJWTRequest, context: grpc.aio.ServicerContext
    ) -> pb.MintActorJWTResponse:
        await self._find("MintActorJWT", request.actor, self.actors, context)
        self.tokens.append(request)
        return pb.MintActorJWTResponse(actor_jwt=f"token-of-{request.actor.name}")


class Provider(credprovider_pb2_grpc.CredentialProviderServicer):
    """Secrets by URI: bytes, or the status that the caller gets."""

    def __init__(self) -> None:
        self.address = ""
        self.secrets: dict[str, bytes | grpc.StatusCode] = {}
        self.asked: list[cred.FetchSecretRequest] = []
        self._server: grpc.aio.Server | None = None

    async def start(self, pki: Pki) -> "Provider":
        bundle = pki.api.read_bytes()
        credentials = grpc.ssl_server_credentials([(bundle, bundle)], pki.pods.pem, True)
        self._server = grpc.aio.server()
        credprovider_pb2_grpc.add_CredentialProviderServicer_to_server(self, self._server)
        port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.address, self.name = f"127.0.0.1:{port}", API_NAME
        await self._server.start()
        return self

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(None)

    async def FetchSecret(
        self, request: cred.FetchSecretRequest, context: grpc.aio.ServicerContext
    ) -> cred.FetchSecretResponse:
        self.asked.append(request)
        secret = self.secrets.get(request.uri, grpc.StatusCode.NOT_FOUND)
        if isinstance(secret, grpc.StatusCode):
            await context.abort(secret, "a secret word of the provider")
            raise AssertionError
        return cred.FetchSecretResponse(opaque_bytes=secret)
