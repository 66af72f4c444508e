"""The listeners and who may use them."""

import ssl

import pytest

from tests.support import raw_h2
from tests.support.endpoint import Endpoint
from tests.support.origins import echo
from tests.support.raw_h2 import RawH2
from tests.support.raw_http1 import RawHttp1, ask, request
from tests.support.stage import Stage

pytestmark = [pytest.mark.conformance("I-35"), pytest.mark.only("agentgateway")]


def plain(stage: Stage) -> Endpoint:
    assert stage.router.plain is not None
    return stage.router.plain


async def test_https_serves_a_client_without_a_certificate(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    assert (await stage.get(actor)).status == 200


async def test_plaintext_serves_http1(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    answer = await ask(plain(stage), request("GET", "/", ("host", "a"), actor.header))
    assert answer.status == 200


async def test_plaintext_serves_http2_by_prior_knowledge(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    async with await RawH2.open(plain(stage)) as connection:
        for _ in range(3):
            assert (await connection.ask(raw_h2.get("/", actor.ref))).status == 200


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["h2"], "h2"), ([], None)],
)
async def test_alpn_chooses_h2_before_http1(
    stage: Stage, offered: list[str], chosen: str | None
) -> None:
    connection = await RawHttp1.open(stage.router.web, alpn=offered)
    stage.closing(connection.close)
    assert connection.writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen


async def test_a_tls_client_without_alpn_speaks_http1(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    connection = await RawHttp1.open(stage.router.web, alpn=[])
    stage.closing(connection.close)
    assert (await connection.ask(request("GET", "/", ("host", "a"), actor.header))).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_1_3_are_spoken(stage: Stage, version: ssl.TLSVersion) -> None:
    def only(alpn):  # type: ignore[no-untyped-def]
        context = stage.pki.edge_client(alpn)
        context.minimum_version = context.maximum_version = version
        return context

    actor, _ = await stage.actor(echo)
    endpoint = Endpoint(stage.router.web.host, stage.router.web.port, only)
    assert (await ask(endpoint, request("GET", "/", ("host", "a"), actor.header))).status == 200


async def test_plaintext_on_a_tls_listener_gets_no_answer(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    endpoint = Endpoint(stage.router.web.host, stage.router.web.port)
    connection = await RawHttp1.open(endpoint)
    stage.closing(connection.close)
    await connection.send(request("GET", "/", ("host", "a"), actor.header))
    assert b"HTTP/1.1 200" not in await connection.rest()
    assert origin.exchanges == []


async def test_the_edge_presents_the_routers_service_name(stage: Stage) -> None:
    connection = await RawHttp1.open(stage.router.web)
    stage.closing(connection.close)
    names = connection.writer.get_extra_info("ssl_object").getpeercert()["subjectAltName"]
    assert names == (("DNS", stage.router.web.server_name),)
