"""Certificates that change while the router runs: no restart, and the new ones alone count."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from tests.support.endpoint import ContextMaker
from tests.support.eventually import eventually
from tests.support.origins import echo
from tests.support.pki import EDGE_CLIENT_ID, ROUTER_NAME, Authority, Pki
from tests.support.raw_http1 import RawHttp1, request
from tests.support.stage import Stage
from tests.unit.router.conftest import Start

pytestmark = pytest.mark.conformance("I-34")


def place(file: Path, content: bytes) -> Path:
    """As every writer of credentials does: a new file, renamed over the old one."""
    partial = file.with_name(f"{file.name}.partial")
    partial.write_bytes(content)
    return partial.replace(file)


def client_of(pki: Pki, authority: Authority, file: Path) -> ContextMaker:
    credential = place(file, authority.issue(uris=[EDGE_CLIENT_ID]))

    def context(alpn) -> ssl.SSLContext:  # type: ignore[no-untyped-def]
        made = pki.edge_client(alpn)
        made.load_cert_chain(credential)
        return made

    return context


async def status(stage: Stage, tls: ContextMaker, data: bytes) -> int | None:
    """Of a request on a connection of its own; None: refused in the handshake."""
    try:
        async with await RawHttp1.open(replace(stage.router.web, tls=tls)) as wire:
            return (await wire.ask(data)).status
    except (OSError, AssertionError):
        return None


async def test_a_client_authority_that_is_replaced_lets_nobody_in_any_more(
    start: Start, pki: Pki, tmp_path: Path
) -> None:
    # B135, B137
    (tmp_path / "trust").mkdir()
    roots = place(tmp_path / "trust" / "clients.pem", pki.pods.pem)
    stage = await start(ingress_client_ca_file=roots)
    actor, _ = await stage.actor(echo)
    ask = request("GET", "/", ("host", "a"), actor.header)
    old, new = (
        client_of(pki, pki.pods, tmp_path / "old.pem"),
        client_of(pki, pki.foreign, tmp_path / "new.pem"),
    )
    assert (await status(stage, old, ask), await status(stage, new, ask)) == (200, None)
    # Both for a while, as bundles overlap; then the new one alone.
    for bundle, expected in (
        (pki.pods.pem + pki.foreign.pem, (200, 200)),
        (pki.foreign.pem, (None, 200)),
    ):
        place(roots, bundle)

        async def taken(expected=expected) -> bool:  # type: ignore[no-untyped-def]
            return (await status(stage, old, ask), await status(stage, new, ask)) == expected

        await eventually(taken)


async def test_a_new_serving_certificate_is_shown_without_a_restart(
    start: Start, pki: Pki, tmp_path: Path
) -> None:
    (tmp_path / "edge").mkdir()
    edge = place(tmp_path / "edge" / "edge.pem", pki.services.issue(dns=[ROUTER_NAME]))
    stage = await start(envoy_cert_path=edge)

    async def shown() -> int:
        async with await RawHttp1.open(stage.router.web) as wire:
            found = wire.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return x509.load_der_x509_certificate(found).serial_number

    first = await shown()
    renewed = pki.services.issue(dns=[ROUTER_NAME])
    leaf = x509.load_pem_x509_certificate(renewed[renewed.index(b"-----BEGIN CERT") :])
    place(edge, renewed)

    async def changed() -> bool:
        return await shown() != first

    await eventually(changed)
    assert await shown() == leaf.serial_number
