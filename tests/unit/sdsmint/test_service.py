"""Delta SDS as Envoy speaks it, with a real process."""

import stat
import time
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.identity.authority import Authority
from atenet.router.envoy_api import message_class
from cryptography import x509

from tests.unit.sdsmint.authorities import bundle, write
from tests.unit.sdsmint.conftest import REQUEST, Start

SECRET = message_class("envoy.extensions.transport_sockets.tls.v3.Secret")


def leaf(resource: Any) -> x509.Certificate:
    secret = SECRET.FromString(resource.resource.value)
    assert secret.name == resource.name
    assert secret.tls_certificate.private_key.inline_bytes.startswith(b"-----BEGIN PRIVATE KEY")
    return x509.load_pem_x509_certificate(secret.tls_certificate.certificate_chain.inline_bytes)


@pytest.mark.conformance("E-20")
async def test_a_name_is_answered_with_a_leaf_that_outlives_its_use(start: Start) -> None:
    mint = await start(leaf_cert_ttl="10m")
    told = await mint.stream().ask("API.example")
    (resource,) = told.resources
    shown = leaf(resource)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName("api.example")]
    shown.verify_directly_issued_by(mint.authority.certificate)
    left = shown.not_valid_after_utc.timestamp() - time.time()
    assert 30 < left - resource.ttl.ToSeconds() <= 60
    assert told.nonce
    assert resource.version


# B115
@pytest.mark.conformance("E-20")
async def test_a_refused_name_is_removed_and_the_others_are_served(start: Start) -> None:
    mint = await start()
    stream = mint.stream()
    told = await stream.ask("under_score.example", "a.example", "*")
    assert [each.name for each in told.resources] == ["a.example"]
    assert list(told.removed_resources) == ["under_score.example", "*"]
    assert [each.name for each in (await stream.ask("b.example")).resources] == ["b.example"]


@pytest.mark.conformance("E-20")
async def test_what_asks_for_nothing_gets_no_answer_and_asking_again_gets_another_leaf(
    start: Start,
) -> None:
    stream = (await start()).stream()
    first = await stream.ask("a.example")
    await stream.send(response_nonce=first.nonce)
    refusal = REQUEST(type_url=first.type_url, response_nonce=first.nonce)
    refusal.error_detail.message = "no"
    await stream.call.write(refusal)
    await stream.send(resource_names_unsubscribe=["a.example"])
    second = await stream.ask("a.example")
    assert second.resources[0].version != first.resources[0].version
    assert leaf(second.resources[0]).serial_number != leaf(first.resources[0]).serial_number


@pytest.mark.conformance("E-20")
async def test_leaves_of_an_authority_that_was_replaced_are_taken_back(start: Start) -> None:
    mint = await start()
    one, two = mint.stream(), mint.stream()
    await one.ask("a.example")
    await two.ask("b.example")
    successor = Authority.create("interception")
    write(mint.pool, bundle(successor))
    assert list((await one.told()).removed_resources) == ["a.example"]
    assert list((await two.told()).removed_resources) == ["b.example"]
    again = await one.ask("a.example")
    leaf(again.resources[0]).verify_directly_issued_by(successor.certificate)


@pytest.mark.conformance("E-20")
async def test_names_are_bounded_and_the_oldest_is_taken_back(start: Start) -> None:
    mint = await start(max_names=2)
    one, two = mint.stream(), mint.stream()
    await one.ask("a.example")
    await two.ask("b.example")
    await two.ask("c.example")
    assert list((await one.told()).removed_resources) == ["a.example"]


async def test_another_kind_of_resource_is_refused(start: Start) -> None:
    stream = (await start()).stream()
    await stream.call.write(
        REQUEST(type_url="type.googleapis.com/x", resource_names_subscribe=["a"])
    )
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        async for _ in stream.call:
            pass
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_socket_is_for_its_own_account_or_one_group(start: Start) -> None:
    mint = await start()
    assert stat.S_IMODE(mint.socket.stat().st_mode) == 0o600
    await mint.close()
    assert not mint.socket.exists()
    shared = await start(uds_gid=12345)
    found = shared.socket.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, 12345)


async def test_no_key_and_no_name_beyond_its_length_is_logged(start: Start) -> None:
    mint = await start(log_level="debug")
    await mint.stream().ask("x" * 5000, "a.example")
    assert "PRIVATE KEY" not in mint.process.log
    assert "x" * 300 not in mint.process.log
