"""Who may connect: T-01, and files that change: T-08."""

import asyncio
import contextlib
import os
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.conformance.atunnel.conftest import Serve, Worker, WorkerMaker, echo, eventually
from tests.support.actor_network import ActorNetwork
from tests.support.pki import ROUTER_ID, WORKER_ID, Authority, Pki
from tests.support.router_peer import client_context, handshake, router_peer

NOT_CONNECT = "HTTP/1.1 405 Method Not Allowed"


@pytest.mark.conformance("T-01")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_router_passes_with_either_version(worker: Worker, version: ssl.TLSVersion) -> None:
    context = client_context(worker.pki, worker.pki.router, ["http/1.1"])
    context.minimum_version = context.maximum_version = version
    assert handshake(worker.address, context) == NOT_CONNECT


@pytest.mark.conformance("T-01")
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["h2", "http/1.1"], "h2"),
        (["http/1.1"], "http/1.1"),
        (["http/1.1", "h2"], "h2"),
        ([], None),
    ],
)
def test_alpn_prefers_http2(worker: Worker, offered: list[str], chosen: str | None) -> None:
    context = client_context(worker.pki, worker.pki.router, offered)
    host, port = worker.address.split(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as raw,
        context.wrap_socket(raw) as wire,
    ):
        assert wire.selected_alpn_protocol() == chosen


@pytest.mark.conformance("T-01")
def test_an_older_version_is_refused_by_alert(worker: Worker) -> None:
    # A TLS 1.1 ClientHello by hand: today's OpenSSL would not send one.
    body = b"\x03\x02" + os.urandom(32) + b"\x00" + b"\x00\x04\xc0\x0a\x00\x2f" + b"\x01\x00"
    hello = b"\x01" + len(body).to_bytes(3, "big") + body
    host, port = worker.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello)
        answer = raw.recv(64)
    assert answer[0] == 21, f"no alert: {answer!r}"
    assert answer[5] == 2, f"not fatal: {answer!r}"


def _other_ids() -> list[str]:
    domain, path = "cluster.local", "/ns/ate-system/sa/atenet-router"
    return [
        f"spiffe://other.local{path}",
        f"spiffe://{domain}/ns/default/sa/atenet-router",
        f"spiffe://{domain}/ns/ate-system/sa/atenet-egress",
        f"spiffe://{domain}{path}/",
        f"spiffe://{domain}{path}/x",
        f"spiffe://{domain}/{path}",
        f"SPIFFE://{domain}{path}",
        f"spiffe://CLUSTER.LOCAL{path}",
        f"spiffe://{domain}:443{path}",
        f"spiffe://{domain}{path}?x",
        f"spiffe://{domain}{path}#x",
        f"spiffe://{domain}/ns/ate-system/sa/atenet-route%72",
        WORKER_ID,
    ]


def _credentials(pki: Pki) -> dict[str, bytes | None]:
    """Clients that are not exactly the router."""
    other = "spiffe://cluster.local/ns/ate-system/sa/other"
    private = pki.pods.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    wrong: dict[str, bytes | None] = {
        "no certificate": None,
        "two ids, the router's first": pki.pods.issue(uris=[ROUTER_ID, other]),
        "two ids, the router's last": pki.pods.issue(uris=[other, ROUTER_ID]),
        "the id twice": pki.pods.issue(uris=[ROUTER_ID, ROUTER_ID]),
        "another authority": pki.foreign.issue(uris=[ROUTER_ID]),
        "expired": pki.pods.issue(uris=[ROUTER_ID], expired=True),
        "only a DNS name": pki.pods.issue(
            dns=[ROUTER_ID.removeprefix("spiffe://").replace("/", ".")]
        ),
        "the authority itself": private + pki.pods.pem,
        "its own signature": _self_signed(),
    }
    return wrong | {spelling: pki.pods.issue(uris=[spelling]) for spelling in _other_ids()}


def _self_signed() -> bytes:
    impostor = Authority.create("pod-identity")
    return impostor.issue(uris=[ROUTER_ID])


@pytest.mark.conformance("T-01")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_everyone_else_is_refused_in_the_handshake(
    worker: Worker, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    for number, (name, bundle) in enumerate(_credentials(worker.pki).items(), start=1):
        path = None
        if bundle is not None:
            path = tmp_path / "client.pem"
            path.write_bytes(bundle)
        context = client_context(worker.pki, path, ["http/1.1"])
        context.minimum_version = context.maximum_version = version
        outcome = await asyncio.gather(
            asyncio.to_thread(handshake, worker.address, context), return_exceptions=True
        )
        # Nothing of HTTP comes back: a status line would stand here.
        assert isinstance(outcome[0], OSError), (name, outcome)
        await eventually(
            lambda number=number: worker.stats()["connections"]["handshakes_failed"] == number
        )


@pytest.mark.conformance("T-01")
def test_a_router_with_further_dns_names_passes(worker: Worker, tmp_path: Path) -> None:
    path = tmp_path / "client.pem"
    path.write_bytes(worker.pki.pods.issue(uris=[ROUTER_ID], dns=["router.example"]))
    assert handshake(worker.address, client_context(worker.pki, path, ["http/1.1"])) == NOT_CONNECT


@pytest.mark.conformance("T-01")
def test_no_session_can_be_resumed_without_the_certificate(worker: Worker) -> None:
    context = client_context(worker.pki, worker.pki.router, ["http/1.1"])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    host, port = worker.address.split(":")
    session = None
    for _ in range(2):
        with (
            socket.create_connection((host, int(port)), timeout=10) as raw,
            context.wrap_socket(raw, session=session) as wire,
        ):
            assert not wire.session_reused
            session = wire.session
            with contextlib.suppress(OSError):
                wire.unwrap()


@pytest.mark.conformance("T-01")
async def test_silent_clients_do_not_keep_the_router_out(worker: Worker) -> None:
    host, port = worker.address.split(":")
    silent = [socket.create_connection((host, int(port)), timeout=10) for _ in range(700)]
    try:
        async with router_peer(worker.address, worker.pki) as peer:
            assert (await peer.request("team/nobody")).status == 421
    finally:
        for connection in silent:
            connection.close()


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.rename(path)


def _served_certificate(worker: Worker, pki: Pki, credential: Path) -> x509.Certificate:
    host, port = worker.address.split(":")
    context = client_context(pki, credential, ["h2"])
    with (
        socket.create_connection((host, int(port)), timeout=10) as raw,
        context.wrap_socket(raw) as wire,
    ):
        der = wire.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


@pytest.mark.conformance("T-08")
def test_a_renewed_credential_is_served_without_a_restart(
    make_worker: WorkerMaker, own_pki: Pki
) -> None:
    worker = make_worker(pki=own_pki)
    before = _served_certificate(worker, own_pki, own_pki.router)
    _replace(own_pki.worker, own_pki.pods.issue(uris=[WORKER_ID]))
    after = _served_certificate(worker, own_pki, own_pki.router)
    assert before.serial_number != after.serial_number


@pytest.mark.conformance("T-08")
def test_a_changed_trust_bundle_decides_the_next_handshake(
    make_worker: WorkerMaker, own_pki: Pki
) -> None:
    worker = make_worker(pki=own_pki)
    successor = own_pki.write("successor.pem", own_pki.foreign.issue(uris=[ROUTER_ID]))

    def passes(credential: Path) -> bool:
        try:
            context = client_context(own_pki, credential, ["http/1.1"])
            # The worker's own certificate stays as it is; only whom it trusts is at stake.
            context.load_verify_locations(cadata=own_pki.pods.pem.decode())
            return handshake(worker.address, context) == NOT_CONNECT
        except OSError:
            return False

    assert (passes(own_pki.router), passes(successor)) == (True, False)
    _replace(own_pki.pod_roots, own_pki.pods.pem + own_pki.foreign.pem)
    assert (passes(own_pki.router), passes(successor)) == (True, True)
    _replace(own_pki.pod_roots, own_pki.foreign.pem)
    assert (passes(own_pki.router), passes(successor)) == (False, True)


@pytest.mark.conformance("T-08")
def test_a_damaged_file_keeps_the_last_good_one(make_worker: WorkerMaker, own_pki: Pki) -> None:
    worker = make_worker(pki=own_pki)
    context = client_context(own_pki, own_pki.router, ["http/1.1"])
    good = own_pki.worker.read_bytes()
    _replace(own_pki.worker, b"not a certificate")
    assert handshake(worker.address, context) == NOT_CONNECT
    own_pki.worker.unlink()
    assert handshake(worker.address, context) == NOT_CONNECT
    _replace(own_pki.worker, good)
    assert handshake(worker.address, context) == NOT_CONNECT


@pytest.mark.conformance("T-08")
async def test_open_tunnels_outlive_a_renewal(
    make_worker: WorkerMaker, own_pki: Pki, shared_network: ActorNetwork, serve: Serve
) -> None:
    worker = make_worker(pki=own_pki)
    await serve(shared_network.listen(80), echo)
    worker.activate("echo", shared_network)
    async with router_peer(worker.address, own_pki) as router:
        tunnel = await router.open("team/echo", early=b"before")
        assert await router.receive(tunnel, 6) == b"before"
        before = _served_certificate(worker, own_pki, own_pki.router)
        _replace(own_pki.worker, own_pki.pods.issue(uris=[WORKER_ID]))
        assert _served_certificate(worker, own_pki, own_pki.router) != before
        await router.send(tunnel, b"after")
        assert await router.receive(tunnel, 5) == b"after"
