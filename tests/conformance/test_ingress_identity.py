"""Who may come in (I-34) and which worker may be spoken to (I-27), on the Envoy dataplane."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.endpoint import ContextMaker, Endpoint
from tests.support.issue import odd_credential
from tests.support.origins import echo
from tests.support.pki import EDGE_CLIENT_ID, ROUTER_NAME, Pki
from tests.support.raw_http1 import RawHttp1, request
from tests.support.scripted_worker import relaying
from tests.support.stage import Stage

pytestmark = pytest.mark.only("envoy")

OTHER_ID = "spiffe://cluster.local/ns/web/sa/other"
LIMIT = 20.0


def client(pki: Pki, bundle: bytes | None, name: str = "odd-client.pem") -> ContextMaker:
    """TLS of a client that shows this key and chain."""
    credential = None if bundle is None else pki.write(name, bundle)

    def context(alpn: Sequence[str]) -> ssl.SSLContext:
        made = pki.edge_client(alpn)
        if credential is not None:
            made.load_cert_chain(credential)
        return made

    return context


async def said_to(stage: Stage, endpoint: Endpoint, tls: ContextMaker) -> bytes:
    """What a client with this TLS hears after a request; nothing if the handshake fails."""
    try:
        wire = await RawHttp1.open(replace(endpoint, tls=tls))
        stage.closing(wire.close)
        await wire.send(request("GET", "/", ("host", "a"), ("ate-target-actor", "no/actor")))
        return await wire.rest()
    except OSError:
        return b""


STRANGERS: dict[str, list[str]] = {
    "another id": [OTHER_ID],
    "two ids": [EDGE_CLIENT_ID, OTHER_ID],
    "two ids, the listed one last": [OTHER_ID, EDGE_CLIENT_ID],
    "an id and a URL": [EDGE_CLIENT_ID, "https://example.org/"],
    "a longer path": [f"{EDGE_CLIENT_ID}/x"],
    "a trailing slash": [f"{EDGE_CLIENT_ID}/"],
    "upper case": [EDGE_CLIENT_ID.replace("spiffe", "SPIFFE")],
    "another trust domain": [EDGE_CLIENT_ID.replace("cluster.local", "cluster.locale")],
    "no URI at all": [],
}


@pytest.mark.conformance("I-34")
@pytest.mark.parametrize("uris", STRANGERS.values(), ids=STRANGERS.keys())
async def test_a_client_that_is_not_exactly_on_the_list_gets_no_status(
    stage: Stage, uris: list[str]
) -> None:
    # B128
    bundle = stage.pki.pods.issue(uris=uris, dns=[] if uris else ["frontend.example"])
    for endpoint in (stage.router.web, stage.router.connect):
        assert await said_to(stage, endpoint, client(stage.pki, bundle)) == b""


@pytest.mark.conformance("I-34")
@pytest.mark.parametrize("fault", ["foreign authority", "expired", "no client usage", "nothing"])
async def test_a_listed_name_on_a_certificate_that_is_not_valid_gets_no_status(
    stage: Stage, fault: str
) -> None:
    # B131
    pki = stage.pki
    bundle: bytes | None = None
    if fault == "foreign authority":
        bundle = pki.foreign.issue(uris=[EDGE_CLIENT_ID])
    elif fault == "expired":
        bundle = pki.pods.issue(uris=[EDGE_CLIENT_ID], expired=True)
    elif fault == "no client usage":
        odd = odd_credential(
            pki.root / "server-only.pem", pki.pods, uris=[EDGE_CLIENT_ID], server_only=True
        )
        bundle = odd.read_bytes()
    for endpoint in (stage.router.web, stage.router.connect):
        assert await said_to(stage, endpoint, client(pki, bundle)) == b""


@pytest.mark.conformance("I-34")
async def test_a_listed_client_is_heard_on_both_listeners_and_nobody_in_plaintext(
    stage: Stage,
) -> None:
    for endpoint in (stage.router.web, stage.router.connect):
        wire = await RawHttp1.open(endpoint)
        stage.closing(wire.close)
        answer = await wire.ask(request("GET", "/", ("host", "a"), ("ate-target-actor", "no/one")))
        assert answer.status in (404, 405)
        plain = await RawHttp1.open(replace(endpoint, tls=None))
        stage.closing(plain.close)
        await plain.send(request("GET", "/", ("host", "a")))
        assert await plain.rest() == b""


def _handshake(
    endpoint: Endpoint, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[bytes, ssl.SSLSession | None, bool]:
    """One request on a blocking socket: what was heard, the session, and whether it was resumed."""
    with socket.create_connection((endpoint.host, endpoint.port), LIMIT) as raw:
        try:
            with context.wrap_socket(raw, server_hostname=ROUTER_NAME, session=session) as wire:
                wire.sendall(
                    request(
                        "GET",
                        "/",
                        ("host", "a"),
                        ("ate-target-actor", "no"),
                        ("connection", "close"),
                    )
                )
                heard = b""
                while data := wire.recv(4096):
                    heard += data
                return heard, wire.session, bool(wire.session_reused)
        except OSError:
            return b"", None, False


@pytest.mark.conformance("I-34")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_no_session_is_resumed(stage: Stage, version: ssl.TLSVersion) -> None:
    # B135: a ticket must not stand in for a certificate.
    for endpoint in (stage.router.web, stage.router.connect):
        context = stage.pki.known_client(["http/1.1"])
        context.minimum_version = context.maximum_version = version
        heard, session, _ = await asyncio.to_thread(_handshake, endpoint, context, None)
        assert heard.startswith(b"HTTP/1.1 40")
        again, _, resumed = await asyncio.to_thread(_handshake, endpoint, context, session)
        assert (again[:11], resumed) == (heard[:11], False)
        # There is nothing that somebody without the certificate could show instead.
        assert session is None or not session.has_ticket


@pytest.mark.conformance("I-27")
async def test_a_connection_to_a_worker_serves_no_actor_whose_assignment_names_another_id(
    stage: Stage,
) -> None:
    origin = await stage.origin(echo)
    worker = await stage.scripted_worker(relaying(origin.address))
    right = stage.actor_on(worker.ip)
    wrong = stage.actor_on(worker.ip, spiffe_id="spiffe://cluster.local/ns/default/sa/other")
    for _ in range(3):
        assert (await stage.get(right)).status == 200
        answer = await stage.get(wrong)
        assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert {tunnel.headers["ate-target-actor"] for tunnel in worker.tunnels} == {right.ref}
    assert {head.get("ate-target-actor") for head in origin.heads} == {None}
