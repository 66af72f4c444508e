"""People who show a token instead of a certificate: against a real issuer over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.address import Address
from atenet.ateapi.callers import TokenError
from atenet.ateapi.failure import CallError
from atenet.ateapi.oidc import KeySet, RoleMap, Verifier
from atenet.ateapi.oidc.fetch import FetchError, Source, from_url
from atenet.ateapi.roles import Role
from atenet.errors import AteError
from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from cryptography.hazmat.primitives import serialization

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref
from tests.support.fake_atelet import FakeAtelet
from tests.support.token_issuer import TokenIssuer, token_issuer


@dataclass
class Door:
    """The control plane's address for people with tokens, and the issuer that it trusts."""

    plane: ControlPlane
    issuer: TokenIssuer
    channel: grpc.aio.Channel

    def control(self) -> Any:
        return pb_grpc.ControlStub(self.channel)

    def list_actors(self, *authorization: str) -> Any:
        metadata = [("authorization", value) for value in authorization]
        return self.control().ListActors(pb.ListActorsRequest(), metadata=metadata)


@pytest.fixture(params=["off", "auto"])
async def door(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    """With and without the engine's front before the other door."""
    async with control_plane(tmp_path) as plane:
        served = plane.identity.service_credential("issuer", ["127.0.0.1"])
        with token_issuer(served) as issuer:
            flags: dict[str, Any] = {
                "token_listen": Address("127.0.0.1", 0),
                "token_issuer": issuer.url,
                "token_audience": ("atenet", "other"),
                "token_roots": plane.identity.trust("service-dns"),
                "token_role": ("staff=editor", "admins=owner", "guests=viewer"),
                "front": request.param,
            }
            async with plane.in_process(**flags):
                roots = plane.identity.trust("service-dns").read_bytes()
                options = [("grpc.ssl_target_name_override", spiffe.API_SERVER_NAME)]
                async with grpc.aio.secure_channel(
                    plane.addresses["tokens"], grpc.ssl_channel_credentials(roots), options
                ) as channel:
                    yield Door(plane, issuer, channel)


@pytest.mark.conformance("C-01")
async def test_a_token_gives_its_owner_the_role_of_its_claims(door: Door) -> None:
    await door.plane.seed("a")
    listed = await door.list_actors(f"Bearer {door.issuer.token()}")
    assert [a.metadata.name for a in listed.actors] == ["a"]
    staff = [("authorization", f"bearer {door.issuer.token()}")]
    space = pb.CreateAtespaceRequest(
        atespace=pb.Atespace(metadata=pb.ResourceMetadata(name="team-b"))
    )
    code, message = await code_of(door.control().CreateAtespace(space, metadata=staff))
    assert (code, message) == (
        "PERMISSION_DENIED",
        f"{door.issuer.url}#alice may not call CreateAtespace",
    )
    admin = [("authorization", f"Bearer {door.issuer.token(roles='admins')}")]
    await door.control().CreateAtespace(space, metadata=admin)


@pytest.mark.conformance("C-01")
async def test_neither_certificate_nor_token_is_unauthenticated(door: Door) -> None:
    assert (await code_of(door.list_actors()))[0] == "UNAUTHENTICATED"
    for odd in ("", "Bearer", "Bearer ", "Basic YTpi", "Token x", "Bearer x y"):
        assert (await code_of(door.list_actors(odd)))[0] == "UNAUTHENTICATED", odd
    good = f"Bearer {door.issuer.token()}"
    assert (await code_of(door.list_actors(good, good)))[0] == "UNAUTHENTICATED"


async def test_a_token_without_a_mapped_role_may_nothing(door: Door) -> None:
    for roles in (["strangers"], [], "", None, {"staff": True}, [["staff"]], 7):
        call = door.list_actors(f"Bearer {door.issuer.token(roles=roles)}")
        assert (await code_of(call))[0] == "PERMISSION_DENIED", roles


async def test_a_certificate_and_a_token_at_once_are_refused(door: Door) -> None:
    metadata = [("authorization", f"Bearer {door.issuer.token()}")]
    call = door.plane.control().ListActors(pb.ListActorsRequest(), metadata=metadata)
    code, message = await code_of(call)
    assert code == "UNAUTHENTICATED"
    assert "not both" in message


# B138: who calls is what the handshake proved, whatever the call says of itself.
async def test_nobody_can_say_who_they_are(door: Door) -> None:
    await door.plane.seed("a")
    forged = [
        ("x-atenet-certified", "yes"),
        ("x-atenet-peer-uri", spiffe.CLI_ID),
        ("x-forwarded-client-cert", f"URI={spiffe.CLI_ID}"),
    ]
    call = door.control().ListActors(pb.ListActorsRequest(), metadata=forged)
    assert (await code_of(call))[0] == "UNAUTHENTICATED"
    stranger = door.plane.control(spiffe.pod_id("default", "stranger"))
    for call in (
        stranger.ListActors(pb.ListActorsRequest(), metadata=forged),
        stranger.GetActor(pb.GetActorRequest(actor=ref("a")), metadata=forged),
    ):
        code, message = await code_of(call)
        assert code == "PERMISSION_DENIED"
        assert "ns/default/sa/stranger" in message


# B135
async def test_a_session_begun_without_a_certificate_does_not_open_the_other_door(
    door: Door,
) -> None:
    trust = ssl.create_default_context(cafile=str(door.plane.identity.trust("service-dns")))
    trust.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    trust.set_alpn_protocols(["h2"])

    def connect(address: str, session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), 5)
        with trust.wrap_socket(
            plain, server_hostname=spiffe.API_SERVER_NAME, session=session
        ) as tls:
            tls.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            assert tls.recv(9), "the server spoke: it accepted the client"
            return tls.session

    tokens, mutual = door.plane.addresses["tokens"], door.plane.addresses["grpc"]
    ticket = await asyncio.to_thread(connect, tokens, None)
    assert ticket is not None
    assert ticket.has_ticket
    await asyncio.to_thread(connect, tokens, ticket)
    for session in (None, ticket):
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            await asyncio.to_thread(connect, mutual, session)


async def test_no_component_s_role_comes_with_a_token(door: Door) -> None:
    metadata = [("authorization", f"Bearer {door.issuer.token(roles=['admins'])}")]
    mint = door.control().MintActorJWT(pb.MintActorJWTRequest(), metadata=metadata)
    assert (await code_of(mint))[0] == "PERMISSION_DENIED"


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _with_head(token: str, algorithm: str) -> str:
    head = {"alg": algorithm, "kid": "k1"}
    return ".".join([_text(json.dumps(head).encode()), *token.split(".")[1:]])


def _by_public_key(issuer: TokenIssuer) -> str:
    """The old confusion: the public key, which everybody has, as a shared secret."""
    public = issuer.keys["k1"][1].public_key()
    secret = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = _with_head(issuer.token(), "HS256").rpartition(".")[0]
    return f"{signed}.{_text(hmac.digest(secret, signed.encode(), 'sha256'))}"


async def test_a_bad_token_is_nobody_s_and_the_refusal_does_not_quote_it(door: Door) -> None:
    issuer, now = door.issuer, int(time.time())
    issuer.add("unpublished")
    issuer.hidden.add("unpublished")
    issuer.add("rsa", "RS256")
    other = TokenIssuer(issuer.url)
    other.add("k1")
    good = issuer.token()
    bad = {
        "expired": issuer.token(exp=now - 120),
        "not yet": issuer.token(nbf=now + 120),
        "made tomorrow": issuer.token(iat=now + 3600),
        "audience": issuer.token(aud="somebody"),
        "audiences": issuer.token(aud=["somebody", "else"]),
        "no audience": issuer.token(aud=None),
        "issuer": issuer.token(iss="https://evil.example"),
        "no subject": issuer.token(sub=None),
        "empty subject": issuer.token(sub=""),
        "no expiry": issuer.token(exp=None),
        "none": _with_head(good, "none").rpartition(".")[0] + ".",
        "none, signed": _with_head(good, "none"),
        "shared secret": _by_public_key(issuer),
        "another's key": other.token(),
        "unpublished": issuer.token("unpublished"),
        "no kid": issuer.token(head={"kid": ""}),
        "must understand": issuer.token(head={"crit": ["shape"], "shape": "round"}),
        "kind of key": issuer.token("rsa", head={"kid": "k1"}),
        "algorithm": _with_head(good, "ES384"),
        "changed": good[:-4] + ("AAAA" if not good.endswith("AAAA") else "BBBB"),
        "long": "a" * 20_000,
        "dots": "a.b.c",
    }
    for what, token in bad.items():
        code, message = await code_of(door.list_actors(f"Bearer {token}"))
        assert code == "UNAUTHENTICATED", what
        assert token.split(".")[-1] not in message or not token.split(".")[-1], what
    await door.list_actors(f"Bearer {good}")


async def test_a_person_may_have_many_groups(door: Door) -> None:
    groups = [f"group-{i:04}-of-a-large-company" for i in range(300)]
    token = door.issuer.token(roles=[*groups, "staff"])
    assert 10_000 < len(token) < 16_000
    await door.list_actors(f"Bearer {token}")


async def test_clocks_may_differ_a_little(door: Door) -> None:
    now = int(time.time())
    token = door.issuer.token(exp=now - 30, iat=now - 600, nbf=now - 600)
    await door.list_actors(f"Bearer {token}")
    await door.list_actors(f"Bearer {door.issuer.token(iat=now + 30, nbf=now + 30)}")


# ---------------------------------------------------------------- keys


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class _Set:
    """A verifier whose key set is fetched from a real issuer, at a time that the test sets."""

    issuer: TokenIssuer
    clock: _Clock
    verifier: Verifier

    async def takes(self, token: str) -> bool:
        try:
            await self.verifier.verify(token)
        except TokenError:
            return False
        return True


@pytest.fixture
async def keys(tmp_path: Path) -> AsyncIterator[_Set]:
    async with control_plane(tmp_path) as plane:
        served = plane.identity.service_credential("issuer", ["127.0.0.1"])
        with token_issuer(served) as issuer:
            clock = _Clock()
            source = Source(issuer.url, f"{issuer.url}/keys", plane.identity.trust("service-dns"))
            roles = RoleMap("roles", ["staff=viewer"])
            known = KeySet(source, clock)
            made = Verifier(issuer.url, ["atenet"], ["ES256", "RS256"], 60, known, roles)
            yield _Set(issuer, clock, made)


async def test_a_new_key_is_taken_when_a_token_names_it(keys: _Set) -> None:
    assert await keys.takes(keys.issuer.token())
    keys.issuer.add("k2", "RS256")
    keys.clock.now += 11
    assert await keys.takes(keys.issuer.token("k2"))
    assert await keys.takes(keys.issuer.token("k1"))
    assert keys.issuer.asked == 2


async def test_made_up_key_ids_do_not_storm_the_issuer(keys: _Set) -> None:
    keys.issuer.add("nobody")
    keys.issuer.hidden.add("nobody")
    for _ in range(20):
        assert not await keys.takes(keys.issuer.token("nobody"))
    assert keys.issuer.asked == 1
    assert await keys.takes(keys.issuer.token())


async def test_a_withdrawn_key_stops_within_minutes(keys: _Set) -> None:
    token = keys.issuer.token()
    assert await keys.takes(token)
    keys.issuer.hidden.add("k1")
    keys.clock.now += 301
    assert not await keys.takes(token)


async def test_an_issuer_that_is_down_is_outlived_for_an_hour(keys: _Set) -> None:
    token = keys.issuer.token()
    assert await keys.takes(token)
    keys.issuer.down = True
    keys.clock.now += 3000
    assert await keys.takes(token)
    keys.clock.now += 700
    with pytest.raises(CallError) as caught:
        await keys.verifier.verify(token)
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    keys.issuer.down = False
    keys.clock.now += 11
    assert await keys.takes(token)


async def test_keys_that_are_no_use_do_not_spoil_the_others(keys: _Set) -> None:
    keys.issuer.extra = [
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "P-256", "kid": "broken", "x": "?", "y": ""},
        {"kty": "new", "kid": "new"},
        {"kty": "RSA"},
    ]
    assert await keys.takes(keys.issuer.token())


# ---------------------------------------------------------------- where keys come from


def test_the_key_set_may_be_a_file(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    issuer.add("k1")
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(issuer.key_set()))
    assert Source("https://x", str(path), None).read() == issuer.key_set()
    path.write_text("[]")
    with pytest.raises(FetchError, match="not a JSON object"):
        Source("https://x", str(path), None).read()
    path.unlink()
    with pytest.raises(FetchError, match="No such file"):
        Source("https://x", str(path), None).read()


async def test_a_server_that_nobody_vouches_for_is_not_believed(keys: _Set) -> None:
    with pytest.raises(FetchError, match="certificate"):
        Source(keys.issuer.url, "", None).read()


def test_keys_never_come_in_the_clear() -> None:
    with pytest.raises(FetchError, match="not https"):
        from_url("http://127.0.0.1:1/keys", None)


# ---------------------------------------------------------------- roles and flags


def test_claims_are_found_by_name_or_path() -> None:
    claims = {
        "https://a.example/roles": ["x"],
        "realm_access": {"roles": ["y"]},
        "group": "z",
        "odd": [1, None, "x"],
    }
    given = ["x=viewer", "y=editor", "z=owner"]
    for claim, role in (
        ("https://a.example/roles", Role.VIEWER),
        ("realm_access.roles", Role.EDITOR),
        ("group", Role.OWNER),
        ("odd", Role.VIEWER),
    ):
        assert RoleMap(claim, given).of(claims) == {role}
    assert RoleMap("realm_access.roles.x", given).of(claims) == frozenset()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"token_audience": ()}, "--token-audience"),
        ({"token_audience": ("",)}, "--token-audience"),
        ({"token_role": ()}, "--token-role"),
        ({"token_role": ("staff=egress_gateway",)}, "--token-role"),
        ({"token_role": ("owner",)}, "--token-role"),
        ({"token_algorithm": ("HS256",)}, "--token-algorithm"),
        ({"token_algorithm": ("none",)}, "--token-algorithm"),
        ({"token_keys": "http://a.example/keys"}, "--token-keys"),
        ({"token_issuer": "accounts", "token_keys": ""}, "--token-issuer"),
        ({"token_listen": None}, "--token-listen"),
        ({"token_issuer": None}, "--token-listen"),
    ],
)
def test_a_bad_flag_is_named(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {
        "token_listen": Address("127.0.0.1", 0),
        "token_issuer": "https://issuer.example",
        "token_audience": ("atenet",),
        "token_role": ("staff=editor",),
    }
    identity = LocalIdentity(tmp_path)
    identity.ensure()
    plane = ControlPlane(tmp_path, identity, FakeAtelet())
    plane.settings(**given)
    with pytest.raises(AteError, match=named):
        plane.settings(**(given | changed))
