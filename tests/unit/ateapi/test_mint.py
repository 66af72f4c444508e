"""Actors' credentials: what is in them, who gets them, and for which incarnation."""

from __future__ import annotations

import asyncio
import getpass
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from atenet.address import Address
from atenet.ateapi.failure import CallError
from atenet.ateapi.mint import keyring
from atenet.ateapi.mint.certificates import CertificateMint, requested_key
from atenet.ateapi.mint.issuer import check_issuer
from atenet.ateapi.store import SigningKey
from atenet.ateapi.store.location import store_location
from atenet.ateapi.store.opening import migrate_store, open_store
from atenet.errors import AteError
from atenet.identity import Authority, spiffe
from atenet.identity.files import write_private
from atenet.proto import ateapi_pb2 as pb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume
from tests.support.postgres import PostgresServer

ISSUER = "https://issuer.example/atenet"


def signing_request(key: Any = None, digest: Any = None) -> bytes:
    key = key or ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    made = builder.sign(key, digest or hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """Mints both kinds; one actor `a` running on node-1."""
    async with control_plane(tmp_path) as made:
        ca = made.identity.root / "ca"
        minting: dict[str, Any] = {
            "actor_ca_cert": ca / "actor-identity.crt",
            "actor_ca_key": ca / "actor-identity.key",
            "issuer": ISSUER,
            "issuer_listen": Address("127.0.0.1", 0),
        }
        async with made.in_process(**minting):
            await made.seed("a")
            await made.register()
            await made.control().ResumeActor(resume("a"))
            yield made


async def _uid(plane: ControlPlane) -> str:
    return (await plane.get("a")).metadata.uid


# ---------------------------------------------------------------- certificates


@pytest.mark.conformance("C-06")
async def test_the_hosting_node_gets_a_tunnel_certificate(plane: ControlPlane) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    request = pb.MintWorkerActorCertificateRequest(
        actor=ref("a"),
        actor_uid=await _uid(plane),
        certificate_signing_request=signing_request(key),
    )
    before = datetime.now(UTC).replace(microsecond=0)
    answer = await plane.worker_service().MintWorkerActorCertificate(request)
    leaf = x509.load_der_x509_certificate(answer.actor_certificates[0])
    leaf.verify_directly_issued_by(plane.identity.authority("actor-identity").certificate)
    assert leaf.public_key() == key.public_key()
    assert _names(leaf) == ["spiffe://substrate-actor.local/worker-for-actor/team-a/a"]
    assert abs(leaf.not_valid_before_utc - (before - timedelta(minutes=5))) < timedelta(seconds=5)
    assert abs(leaf.not_valid_after_utc - (before + timedelta(hours=1))) < timedelta(seconds=5)
    usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature
    assert not usage.key_cert_sign


async def test_the_gateway_gets_the_actor_s_own_certificate(plane: ControlPlane) -> None:
    request = pb.MintActorCertificateRequest(
        actor=ref("a"), certificate_signing_request=signing_request()
    )
    answer = await plane.control(spiffe.EGRESS_ID).MintActorCertificate(request)
    leaf = x509.load_der_x509_certificate(answer.actor_certificates[0])
    assert _names(leaf) == ["spiffe://substrate-actor.local/actor/team-a/a"]


def _names(leaf: x509.Certificate) -> list[str]:
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in names]


async def test_only_the_hosting_node_gets_it(plane: ControlPlane) -> None:
    uid = await _uid(plane)

    def mint(node: str) -> Any:
        request = pb.MintWorkerActorCertificateRequest(
            actor=ref("a"), actor_uid=uid, certificate_signing_request=signing_request()
        )
        return plane.worker_service(node).MintWorkerActorCertificate(request)

    assert (await code_of(mint("node-2")))[0] == "PERMISSION_DENIED"
    await plane.control().SuspendActor(pb.SuspendActorRequest(actor=ref("a")))
    assert (await code_of(mint("node-1")))[0] == "PERMISSION_DENIED"


async def test_while_it_is_being_stopped_the_node_is_told_to_ask_again(
    plane: ControlPlane,
) -> None:
    """It may turn out to run on, and a refusal would be the last word."""
    uid = await _uid(plane)
    let_go = plane.atelet.stall("Checkpoint")
    stopping = asyncio.ensure_future(
        plane.control().SuspendActor(pb.SuspendActorRequest(actor=ref("a")))
    )
    await plane.atelet.arrived("Checkpoint")
    request = pb.MintWorkerActorCertificateRequest(
        actor=ref("a"), actor_uid=uid, certificate_signing_request=signing_request()
    )
    for node, code in (("node-1", "UNAVAILABLE"), ("node-2", "PERMISSION_DENIED")):
        call = plane.worker_service(node).MintWorkerActorCertificate(request)
        assert (await code_of(call))[0] == code
    let_go()
    await stopping


# B132
@pytest.mark.conformance("C-07")
async def test_nothing_is_minted_for_an_incarnation_that_is_gone(plane: ControlPlane) -> None:
    old = await _uid(plane)
    control, gateway = plane.control(), plane.control(spiffe.EGRESS_ID)
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))

    def calls() -> list[Any]:
        csr = signing_request()
        return [
            plane.worker_service().MintWorkerActorCertificate(
                pb.MintWorkerActorCertificateRequest(
                    actor=ref("a"), actor_uid=old, certificate_signing_request=csr
                )
            ),
            gateway.MintActorCertificate(
                pb.MintActorCertificateRequest(
                    actor=ref("a"), actor_uid=old, certificate_signing_request=csr
                )
            ),
            gateway.MintActorJWT(_jwt_request(actor_uid=old)),
        ]

    assert [(await code_of(call))[0] for call in calls()] == ["NOT_FOUND"] * 3
    await plane.seed("a")
    await control.ResumeActor(resume("a"))
    assert [(await code_of(call))[0] for call in calls()] == ["ABORTED"] * 3


def _broken_signature() -> bytes:
    made = bytearray(signing_request())
    made[-1] ^= 1
    return bytes(made)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"nonsense",
        b"\x30" * 16385,
        _broken_signature(),
        signing_request(ec.generate_private_key(ec.SECP384R1())),
        signing_request(rsa.generate_private_key(65537, 2048)),
        signing_request() + b"\0",
    ],
    ids=["empty", "nonsense", "long", "signature", "p384", "rsa", "trailing"],
)
def test_a_bad_signing_request_is_refused(bad: bytes) -> None:
    with pytest.raises(CallError, match=r"^certificate_signing_request: ") as caught:
        requested_key(bad)
    assert caught.value.code.name == "INVALID_ARGUMENT"


# B137
def test_a_replaced_authority_issues_without_a_restart_and_a_bad_one_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = tmp_path / "ca.crt", tmp_path / "ca.key"
    first, second = Authority.create("actors"), Authority.create("actors")
    first.save(*files)
    mint = CertificateMint(*files)
    key = ec.generate_private_key(ec.SECP256R1()).public_key()

    def issuer() -> Any:
        leaf = x509.load_der_x509_certificate(mint.issue(key, "spiffe://a")[0])
        return leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value

    before = issuer()
    second.save(*files)
    after = issuer()
    assert after != before
    tomorrow = Authority.create("actors", now=datetime.now(UTC) + timedelta(days=1))
    tomorrow.save(*files)
    assert issuer() == after
    assert "not valid before" in caplog.records[-1].__dict__["error"]
    assert str(files[0]) in caplog.records[-1].__dict__["error"]


def test_an_expired_authority_issues_nothing(tmp_path: Path) -> None:
    files = tmp_path / "ca.crt", tmp_path / "ca.key"
    Authority.create("actors", lifetime=timedelta(hours=1)).save(*files)
    mint = CertificateMint(*files)
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    with pytest.raises(CallError) as caught:
        mint.issue(key, "spiffe://a", now=datetime.now(UTC) + timedelta(hours=2))
    assert caught.value.code.name == "UNAVAILABLE"


async def test_without_an_authority_or_an_issuer_nothing_is_minted(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process():
        await plane.seed("a")
        gateway = plane.control(spiffe.EGRESS_ID)
        certificate = pb.MintActorCertificateRequest(
            actor=ref("a"), certificate_signing_request=signing_request()
        )
        for call, flag in (
            (gateway.MintActorCertificate(certificate), "--actor-ca-cert"),
            (gateway.MintActorJWT(_jwt_request()), "--issuer"),
        ):
            code, message = await code_of(call)
            assert code == "FAILED_PRECONDITION"
            assert flag in message


# ---------------------------------------------------------------- tokens


def _jwt_request(**changed: Any) -> pb.MintActorJWTRequest:
    given: dict[str, Any] = {
        "actor": ref("a"),
        "audience": ["https://api.example"],
        "expiration_seconds": 600,
    }
    return pb.MintActorJWTRequest(**(given | changed))


async def _pages(plane: ControlPlane) -> tuple[dict[str, Any], dict[str, Any]]:
    """Discovery and key set, as a verifier that checks the certificate sees them."""
    trust = ssl.create_default_context(cafile=plane.identity.trust("service-dns"))
    trust.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    at = f"https://{plane.addresses['issuer']}"
    names = {"sni_hostname": spiffe.API_SERVER_NAME}
    async with httpx.AsyncClient(verify=trust) as client:
        path = "/atenet/.well-known/openid-configuration"
        found = (await client.get(at + path, extensions=names)).json()
        keys = await client.get(
            at + found["jwks_uri"].removeprefix("https://issuer.example"), extensions=names
        )
        assert keys.headers["content-type"] == "application/json"
    return found, keys.json()


async def test_a_token_verifies_by_what_the_issuer_publishes(plane: ControlPlane) -> None:
    began = int(time.time())
    answer = await plane.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request())
    found, keys = await _pages(plane)
    assert found["issuer"] == ISSUER
    head = jwt.get_unverified_header(answer.actor_jwt)
    (key,) = [k for k in jwt.PyJWKSet.from_dict(keys).keys if k.key_id == head["kid"]]
    claims = jwt.decode(
        answer.actor_jwt, key, ["ES256"], audience="https://api.example", issuer=ISSUER
    )
    assert head["alg"] == "ES256"
    assert claims["sub"] == "actor/team-a/a"
    assert claims["aud"] == ["https://api.example"]
    assert claims["nbf"] == claims["iat"] - 300
    assert 0 <= claims["iat"] - began <= 5
    assert claims["exp"] == claims["iat"] + 600 == answer.expires_at.seconds
    assert claims["ate.dev"] == {
        "atespace": "team-a",
        "actorName": "a",
        "actorUID": await _uid(plane),
    }
    assert not {"d", "k", "p"} & set(keys["keys"][0]), "a private part is published"
    again = await plane.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request())
    other = jwt.decode(again.actor_jwt, options={"verify_signature": False})
    assert other["jti"] != claims["jti"]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"audience": []}, "audience"),
        ({"audience": ["a"] * 17}, "audience"),
        ({"audience": ["a", ""]}, "audience[1]"),
        ({"audience": ["a" * 513]}, "audience[0]"),
        ({"expiration_seconds": 299}, "expiration_seconds"),
        ({"expiration_seconds": 3601}, "expiration_seconds"),
        ({"actor": ref("A")}, "actor.name"),
        ({"actor_uid": "u" * 65}, "actor_uid"),
    ],
)
async def test_a_bad_token_request_is_named(
    plane: ControlPlane, changed: dict[str, Any], field: str
) -> None:
    call = plane.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request(**changed))
    code, message = await code_of(call)
    assert (code, message.split(":")[0]) == ("INVALID_ARGUMENT", field)


def _key(kid: str, signs_from: float) -> SigningKey:
    return SigningKey(kid, 0.0, signs_from, b"")


def test_keys_overlap() -> None:
    keys = [_key("a", 0.0), _key("b", 10_000.0)]
    for now, signs, published in (
        (9_999.0, "a", ["a", "b"]),
        (10_000.0, "b", ["b", "a"]),
        (10_000.0 + 3_899, "b", ["b", "a"]),
        (10_000.0 + 3_900, "b", ["b"]),
    ):
        current = keyring.signing(keys, now)
        assert current is not None
        assert current.kid == signs
        assert [key.kid for key in keyring.published(keys, now)] == published
    assert keyring.signing([_key("a", 5.0)], 4.0) is None


async def test_a_rotation_reaches_who_serves_already_and_old_tokens_still_verify(
    tmp_path: Path,
) -> None:
    async with (
        control_plane(tmp_path) as plane,
        plane.in_process(issuer=ISSUER, issuer_listen=Address("127.0.0.1", 0)),
    ):
        await plane.seed("a")
        gateway = plane.control(spiffe.EGRESS_ID)
        old = (await gateway.MintActorJWT(_jwt_request())).actor_jwt
        store = ["--store", str(tmp_path / "ate.db")]
        made = await _run("rotate", *store, "--ahead", "0")
        new = (await gateway.MintActorJWT(_jwt_request())).actor_jwt
        assert jwt.get_unverified_header(new)["kid"] == made.split()[0]
        assert await _verifying(plane, old, new) == [True, True]
        listed = await _run("list", *store)
        assert [line.split()[1] for line in listed.splitlines()] == ["published", "signs"]

        later = await _run("rotate", *store)
        assert "signs in 600 s" in later
        same = (await gateway.MintActorJWT(_jwt_request())).actor_jwt
        assert jwt.get_unverified_header(same)["kid"] == made.split()[0]

        await _run("revoke", made.split()[0], *store)
        assert await _verifying(plane, old, new) == [True, False]
        await gateway.MintActorJWT(_jwt_request())
        kept = await open_store(tmp_path / "ate.db")
        rows = await kept.read(lambda tx: tx.audit.last(10))
        await kept.close()
        told = [(r.entry.subject, r.entry.method) for r in rows if "keys/" in r.entry.method]
        who = f"user/{getpass.getuser()}"
        assert told == [(who, "keys/rotate"), (who, "keys/rotate"), (who, "keys/revoke")]


async def test_sealed_keys_are_worth_nothing_without_the_secret(tmp_path: Path) -> None:
    secret, other, short = (tmp_path / name for name in ("secret", "other", "short"))
    write_private(secret, b"s" * 32)
    write_private(other, b"o" * 32)
    write_private(short, b"s" * 31)
    async with control_plane(tmp_path) as plane:
        async with plane.in_process(issuer=ISSUER):
            await plane.seed("a")
            await plane.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request())
        # A key that was stored before there was a secret stays good; new ones are sealed.
        store = ["--store", str(tmp_path / "ate.db")]
        await _run("rotate", *store, "--ahead", "0", "--keys-secret", str(secret))
        sealed = (await _run("list", *store)).splitlines()[-1].split()[0]
        kept = await open_store(tmp_path / "ate.db")
        keys = await kept.read(lambda tx: tx.signing_keys.all())
        await kept.close()
        assert [b"PRIVATE KEY" in key.private_key for key in keys] == [True, False]
        for flags, why in (
            ({}, f"{sealed} is sealed"),
            ({"keys_secret": other}, f"{sealed} is not sealed with this --keys-secret"),
            ({"keys_secret": short}, "has 31 bytes; 32 at least"),
        ):
            with pytest.raises(AteError, match=why):
                async with plane.in_process(issuer=ISSUER, **flags):
                    pass
        assert "is sealed" in await _run("rotate", *store, code=1)
        assert "is sealed" in await _run("revoke", sealed, *store, code=1)
        async with plane.in_process(
            issuer=ISSUER, issuer_listen=Address("127.0.0.1", 0), keys_secret=secret
        ):
            answer = await plane.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request())
            assert jwt.get_unverified_header(answer.actor_jwt)["kid"] == sealed
            assert await _verifying(plane, answer.actor_jwt) == [True]


async def test_replicas_that_start_together_agree_on_the_keys(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.database()
    await migrate_store(store_location(url))
    flags: dict[str, Any] = {"issuer": ISSUER, "issuer_listen": Address("127.0.0.1", 0)}
    async with AsyncExitStack() as stack:
        planes = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            made = await stack.enter_async_context(control_plane(tmp_path / name))
            made.store = url
            planes.append(made)
        started = [made.in_process(**flags) for made in planes]
        await asyncio.gather(*(context.__aenter__() for context in started))
        for context in started:
            stack.push_async_exit(context)
        await planes[0].seed("a")
        tokens = []
        for made in planes:
            answer = await made.control(spiffe.EGRESS_ID).MintActorJWT(_jwt_request())
            tokens.append(answer.actor_jwt)
        kids = {jwt.get_unverified_header(token)["kid"] for token in tokens}
        assert len(kids) == 1, "one key signs, whoever minted"
        for made in planes:
            assert await _verifying(made, *tokens) == [True, True]


async def _verifying(plane: ControlPlane, *tokens: str) -> list[bool]:
    _, keys = await _pages(plane)
    known = {key["kid"] for key in keys["keys"]}
    return [jwt.get_unverified_header(token)["kid"] in known for token in tokens]


async def _run(*words: str, code: int = 0) -> str:
    """What it printed; what it complained about if it is to fail."""
    program = "from atenet.ateapi.main import main; main(prog_name='ateapi')"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, "keys", *words, "--log-level", "error"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == code, err.decode()
    return (err if code else out).decode()


@pytest.mark.parametrize(
    "bad",
    ["http://a.example", "https://", "https://a.example/", "https://a.example?x", "issuer", ""],
)
def test_a_bad_issuer_is_refused(bad: str) -> None:
    with pytest.raises(AteError, match="--issuer"):
        check_issuer(bad)
