"""The credential provider as the egress gateway meets it: a real process over mTLS."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from atenet.credentials.process import serve
from atenet.credentials.settings import CredentialsSettings
from atenet.errors import AteError
from atenet.identity.spiffe import EGRESS_ID
from atenet.proto import credprovider_pb2 as pb
from atenet.proto import credprovider_pb2_grpc

from tests.support.eventually import eventually
from tests.support.pki import API_NAME, ROUTER_ID, Pki

ACTOR = "spiffe://substrate-actor.local/actor/team/agent"
URI = "ate-secret://local.ate/file/token"


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def settings(pki: Pki, **changed: object) -> CredentialsSettings:
    directory = pki.root / "secrets"
    (directory / "team").mkdir(parents=True, exist_ok=True)
    (directory / "team" / "token").write_bytes(b"s3cret")
    given = {
        "listen": "127.0.0.1:0",
        "credential": pki.api,
        "trust": pki.pod_roots,
        "directory": directory,
        "ready_file": pki.root / "ready.json",
        **changed,
    }
    return CredentialsSettings(**given)  # type: ignore[arg-type]


@pytest_asyncio.fixture
async def address(pki: Pki) -> AsyncIterator[str]:
    stop = asyncio.Event()
    ready = pki.root / "ready.json"
    task = asyncio.create_task(serve(settings(pki), stop))
    await eventually(ready.exists)
    yield json.loads(ready.read_text())["grpc"]
    stop.set()
    await task


async def fetch(pki: Pki, address: str, identity: str, uri: str, actor: str = ACTOR) -> bytes:
    bundle = pki.pods.issue(uris=[identity])
    credentials = grpc.ssl_channel_credentials(pki.services.pem, bundle, bundle)
    options = [("grpc.ssl_target_name_override", API_NAME)]
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        stub = credprovider_pb2_grpc.CredentialProviderStub(channel)
        request = pb.FetchSecretRequest(uri=uri, actor_spiffe_id=actor)
        answer: pb.FetchSecretResponse = await stub.FetchSecret(request, timeout=10)
        return answer.opaque_bytes


async def test_the_gateway_gets_what_stands_under_the_actors_atespace(
    pki: Pki, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await fetch(pki, address, EGRESS_ID, URI) == b"s3cret"
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("identity", "uri", "actor", "code"),
    [
        (ROUTER_ID, URI, ACTOR, grpc.StatusCode.PERMISSION_DENIED),
        (EGRESS_ID, URI, ACTOR.replace("team", "other"), grpc.StatusCode.NOT_FOUND),
        (EGRESS_ID, URI.replace("local.ate", "else.ate"), ACTOR, grpc.StatusCode.NOT_FOUND),
        (EGRESS_ID, URI + "/../x", ACTOR, grpc.StatusCode.INVALID_ARGUMENT),
        (
            EGRESS_ID,
            URI,
            "spiffe://cluster.local/actor/team/agent",
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (EGRESS_ID, URI, ACTOR.replace("team", ".."), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_everybody_and_everything_else_is_refused(
    pki: Pki, address: str, identity: str, uri: str, actor: str, code: grpc.StatusCode
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await fetch(pki, address, identity, uri, actor)
    assert caught.value.code() is code


async def test_without_a_source_it_does_not_start(pki: Pki) -> None:
    with pytest.raises(AteError, match="nothing to serve"):
        await serve(settings(pki, directory=None), asyncio.Event())
    with pytest.raises(AteError, match="--directory"):
        await serve(settings(pki, directory=pki.root / "none"), asyncio.Event())
