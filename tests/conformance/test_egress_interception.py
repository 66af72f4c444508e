"""TLS that is opened on the way: minted leaves, each request judged by itself, origins verified."""

import datetime
import json
import ssl

import pytest
from cryptography import x509

from tests.support.egress_stage import EgressStage, https, passthrough
from tests.support.origins import answering, echo
from tests.support.raw_h2 import RawH2
from tests.support.raw_http1 import RawHttp1, request


def leaf(wire: RawHttp1) -> x509.Certificate:
    shown = wire.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown)


@pytest.mark.conformance("E-08", "E-20")
async def test_an_https_rule_opens_the_connection_with_a_leaf_of_its_own(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port)
    answer = await wire.ask(request("GET", "/path", ("host", name)))
    assert json.loads(answer.data)["start"] == "GET /path HTTP/1.1"
    shown = leaf(wire)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [name]
    lifetime = shown.not_valid_after_utc - shown.not_valid_before_utc
    assert lifetime < datetime.timedelta(days=2)


@pytest.mark.conformance("E-20")
async def test_a_leaf_is_minted_once_for_a_name(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    shown = {leaf(await egress.tls(actor, name, origin.port)).serial_number for _ in range(3)}
    assert len(shown) == 1


@pytest.mark.conformance("E-20")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_strict_clients_of_either_version_take_the_leaf(
    egress: EgressStage, version: ssl.TLSVersion
) -> None:
    name, origin = await egress.secure_web(answering(200))
    actor = egress.actor(https(name, ports=[origin.port]))
    context = egress.pki.actor_client()
    context.minimum_version = context.maximum_version = version
    wire = await egress.tls(actor, name, origin.port, context)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200


# B086, B088
@pytest.mark.conformance("E-10")
async def test_each_request_of_a_connection_is_judged_by_its_own_host(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(answering(200))
    other, elsewhere = await egress.secure_web(answering(200, b"other"), port=origin.port)
    actor = egress.actor(https(name, other, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port)
    assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
    refused = await wire.ask(request("GET", "/", ("host", "denied.example")))
    assert (refused.status, refused.head.get("ate-reason")) == (403, "no-egress-rule")
    # Covered by a rule of its own: carried under it, to its own origin.
    assert (await wire.ask(request("GET", "/", ("host", other)))).data == b"other"
    assert elsewhere.connections == 1


@pytest.mark.conformance("E-10")
async def test_a_host_that_is_only_passed_through_cannot_be_reached_by_fronting(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(answering(200))
    pinned, own = await egress.secure_web(answering(200), port=origin.port)
    rules = [https(name, ports=[origin.port]), passthrough(pinned, ports=[origin.port])]
    wire = await egress.tls(egress.actor(*rules), name, origin.port)
    refused = await wire.ask(request("GET", "/", ("host", pinned)))
    assert (refused.status, refused.head.get("ate-reason")) == (403, "egress-not-intercepted")
    assert own.connections == 0


# B122
@pytest.mark.conformance("E-10", "E-21")
async def test_each_stream_of_http2_is_judged_by_its_own_authority(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port, egress.pki.actor_client("h2"))
    async with await RawH2.over(wire) as connection:

        def ask(authority: str) -> list[tuple[str, str]]:
            return [
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", authority),
                (":path", "/"),
            ]

        answer = await connection.ask(ask(f"{name}:{origin.port}"))
        assert answer.status == 200
        assert json.loads(bytes(answer.data))["start"] == "GET / HTTP/1.1"
        refused = await connection.ask(ask("denied.example"))
        assert (refused.status, refused.get("ate-reason")) == (403, "no-egress-rule")
        assert (await connection.ask(ask("denied_.example"))).status == 400


# B116
@pytest.mark.conformance("E-21")
@pytest.mark.parametrize("fault", ["expired", "wrong name", "unknown authority"])
async def test_an_origin_with_a_bad_certificate_gets_no_request(
    egress: EgressStage, fault: str
) -> None:
    pki, name = egress.pki, egress.name()
    tls = {
        "expired": lambda: pki.origin_server(name, expired=True),
        "wrong name": lambda: pki.origin_server("another.test.example"),
        "unknown authority": lambda: pki.origin_server(name, authority=pki.pki.foreign),
    }[fault]()
    origin = await egress.origin(echo, tls=tls)
    egress.names.names[name] = [[origin.address]]
    actor = egress.actor(https(name, ports=[origin.port]))
    answer = await egress.get_secure(actor, origin.port, name)
    assert (answer.status, answer.head.get("ate-reason")) == (502, "origin-untrusted")
    said = {"expired": b"expired", "wrong name": b"another name", "unknown authority": b"issuer"}
    assert said[fault] in answer.data
    assert origin.exchanges == []


@pytest.mark.conformance("E-13")
async def test_no_upgrade_leaves_an_intercepted_connection(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
    refused = await egress.get_secure(actor, origin.port, name, *upgrade)
    assert (refused.status, refused.head.get("ate-reason")) == (403, "upgrade-denied")
    assert origin.connections == 0


@pytest.mark.conformance("E-20")
async def test_an_actor_that_does_not_trust_the_authority_is_not_carried(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    with pytest.raises(ssl.SSLCertVerificationError):
        await egress.tls(actor, name, origin.port, egress.pki.pinned_client())
    assert origin.connections == 0


@pytest.mark.conformance("E-21")
async def test_connections_to_origins_are_reused_within_a_tunnel_and_never_beyond(
    egress: EgressStage,
) -> None:
    name, origin = await egress.secure_web(answering(200))
    actors = [egress.actor(https(name, ports=[origin.port])) for _ in range(2)]
    for count, actor in enumerate(actors, 1):
        wire = await egress.tls(actor, name, origin.port)
        for _ in range(3):
            assert (await wire.ask(request("GET", "/", ("host", name)))).status == 200
        assert origin.connections == count


# B118
@pytest.mark.conformance("E-21")
@pytest.mark.parametrize("offered", ["http/1.1", "h2"])
@pytest.mark.parametrize("speaks", ["http/1.1", "no protocol named", "h2"])
async def test_whatever_either_leg_speaks_an_answer_arrives(
    egress: EgressStage, offered: str, speaks: str
) -> None:
    if speaks == "h2":
        name, h2_origin = await egress.http2_web()
        port = h2_origin.port
    else:
        name = egress.name()
        alpn = ("http/1.1",) if speaks == "http/1.1" else ()
        tls = egress.pki.origin_server(name, alpn=alpn)
        origin = await egress.origin(answering(200, b'{"path": "/a"}'), tls=tls)
        egress.names.names[name] = [[origin.address]]
        port = origin.port
    actor = egress.actor(https(name, ports=[port]))
    wire = await egress.tls(actor, name, port, egress.pki.actor_client(offered))
    if offered == "h2":
        fields = [(":method", "GET"), (":scheme", "https"), (":authority", name), (":path", "/a")]
        async with await RawH2.over(wire) as connection:
            answer = await connection.ask(fields)
            status, body = answer.status, bytes(answer.data)
    else:
        asked = await wire.ask(request("GET", "/a", ("host", name)))
        status, body = asked.status, asked.data
    assert (status, json.loads(body)["path"]) == (200, "/a")
