"""Credentials that the actor never sees: put into its requests on their way out."""

import json
from typing import Any

import grpc
import pytest

from tests.support.egress_stage import EgressStage, http, https
from tests.support.origins import Origin, echo
from tests.support.raw_http1 import Response, request

_numbers = iter(range(1_000_000))


def secret_uri(egress: EgressStage, secret: bytes | grpc.StatusCode) -> str:
    uri = f"ate-secret://secrets.example/main/secret-{next(_numbers)}"
    egress.provider.secrets[uri] = secret
    return uri


async def prepared(egress: EgressStage, *entries: dict[str, Any]) -> tuple[str, str, Origin]:
    """An actor, a TLS origin's name and the origin, with these headers replaced."""
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port], replaceHeaders=list(entries)))
    return actor, name, origin


def values(answer: Response, field: str) -> list[str]:
    fields = json.loads(answer.data)["fields"]
    return [value for key, value in fields if key.lower() == field]


# B123
@pytest.mark.conformance("E-14")
@pytest.mark.parametrize(
    ("header", "prefix"), [("Authorization", "Bearer "), ("Cookie", "session=")]
)
async def test_a_placeholder_is_replaced_with_all_its_values(
    egress: EgressStage, header: str, prefix: str
) -> None:
    uri = secret_uri(egress, b"s3cret\n")
    entry = {"header": header, "prefix": prefix, "credentialUri": uri}
    actor, name, origin = await prepared(egress, entry)
    placeholders = [(header.lower(), "one=1"), (header.upper(), "two=2")]
    answer = await egress.get_secure(actor, origin.port, name, *placeholders)
    assert values(answer, header.lower()) == [f"{prefix}s3cret"]
    (asked,) = [ask for ask in egress.provider.asked if ask.uri == uri]
    assert asked.actor_spiffe_id == f"spiffe://substrate-actor.local/actor/{actor}"
    assert "s3cret" not in egress.gateway.process.log


# B104
@pytest.mark.conformance("E-14", "E-09")
async def test_a_rule_for_a_pattern_replaces_for_every_name_that_it_covers(
    egress: EgressStage,
) -> None:
    uri = secret_uri(egress, b"s3cret")
    name, origin = await egress.secure_web(echo)
    suffix = name.partition(".")[2]
    entry = {"header": "x-key", "credentialUri": uri}
    actor = egress.actor(https(f"*.{suffix}", ports=[origin.port], replaceHeaders=[entry]))
    answer = await egress.get_secure(actor, origin.port, name, ("x-key", "placeholder"))
    assert values(answer, "x-key") == ["s3cret"]


@pytest.mark.conformance("E-14")
async def test_a_header_that_the_request_lacks_is_not_even_fetched(egress: EgressStage) -> None:
    uri = secret_uri(egress, b"s3cret")
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    answer = await egress.get_secure(actor, origin.port, name)
    assert values(answer, "x-key") == []
    assert [ask for ask in egress.provider.asked if ask.uri == uri] == []


# B123
@pytest.mark.conformance("E-14")
async def test_trailers_cannot_bring_the_placeholder_back(egress: EgressStage) -> None:
    uri = secret_uri(egress, b"s3cret")
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    wire = await egress.tls(actor, name, origin.port)
    fields = [("host", name), ("x-key", "placeholder"), ("transfer-encoding", "chunked")]
    body = b"1\r\na\r\n0\r\nx-key: mine\r\nx-other: stays\r\n\r\n"
    await wire.send(request("POST", "/", *fields) + body)
    told = json.loads((await wire.response()).data)
    assert told["trailers"] == [["x-other", "stays"]]


@pytest.mark.conformance("E-14")
async def test_an_origin_is_not_made_to_show_a_credential(egress: EgressStage) -> None:
    uri = secret_uri(egress, b"s3cret")
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    wire = await egress.tls(actor, name, origin.port)
    answer = await wire.ask(request("TRACE", "/", ("host", name), ("x-key", "placeholder")))
    assert (answer.status, answer.head.get("ate-reason")) == (403, "trace-denied")
    assert [ask for ask in egress.provider.asked if ask.uri == uri] == []
    assert origin.exchanges == []


@pytest.mark.conformance("E-14")
async def test_where_no_credential_is_put_in_a_trace_may_go(egress: EgressStage) -> None:
    name, origin = await egress.secure_web(echo)
    actor = egress.actor(https(name, ports=[origin.port]))
    wire = await egress.tls(actor, name, origin.port)
    answer = await wire.ask(request("TRACE", "/", ("host", name)))
    assert json.loads(answer.data)["start"] == "TRACE / HTTP/1.1"


@pytest.mark.conformance("E-14")
async def test_a_credential_is_fetched_once_for_an_actor_and_again_for_another(
    egress: EgressStage,
) -> None:
    uri = secret_uri(egress, b"s3cret")
    entry = {"header": "x-key", "credentialUri": uri}
    actor, name, origin = await prepared(egress, entry)
    other = egress.actor(https(name, ports=[origin.port], replaceHeaders=[entry]))
    for each in (actor, actor, other):
        answer = await egress.get_secure(each, origin.port, name, ("x-key", "p"))
        assert values(answer, "x-key") == ["s3cret"]
    assert len([ask for ask in egress.provider.asked if ask.uri == uri]) == 2


# B087
@pytest.mark.conformance("E-14")
async def test_a_credential_goes_to_the_rules_own_host_alone(egress: EgressStage) -> None:
    uri = secret_uri(egress, b"s3cret")
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    plain, other = await egress.web(echo)
    egress.api.allow(
        actor,
        https(
            name, ports=[origin.port], replaceHeaders=[{"header": "x-key", "credentialUri": uri}]
        ),
        http(plain, ports=[other.port]),
    )
    answer = await egress.get(actor, other.port, plain, ("x-key", "placeholder"))
    assert values(answer, "x-key") == ["placeholder"]


# B124, B126
@pytest.mark.conformance("E-15")
@pytest.mark.parametrize(
    ("secret", "status", "reason"),
    [
        (grpc.StatusCode.NOT_FOUND, 403, "credential-denied"),
        (grpc.StatusCode.PERMISSION_DENIED, 403, "credential-denied"),
        (grpc.StatusCode.UNAVAILABLE, 503, "credential-unavailable"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, 503, "credential-unavailable"),
        (b"", 503, "credential-unavailable"),
        (b"\n", 503, "credential-unavailable"),
        (b"to\nk", 503, "credential-unavailable"),
        (b"tok\x00", 503, "credential-unavailable"),
    ],
    ids=str,
)
async def test_a_credential_that_cannot_be_had_stops_the_request(
    egress: EgressStage, secret: bytes | grpc.StatusCode, status: int, reason: str
) -> None:
    uri = secret_uri(egress, secret)
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    answer = await egress.get_secure(actor, origin.port, name, ("x-key", "placeholder"))
    assert (answer.status, answer.head.get("ate-reason")) == (status, reason)
    assert b"secret word" not in answer.data
    assert "secret word" not in egress.gateway.process.log
    assert origin.exchanges == []


@pytest.mark.conformance("E-15")
async def test_a_failure_is_not_remembered(egress: EgressStage) -> None:
    uri = secret_uri(egress, grpc.StatusCode.UNAVAILABLE)
    actor, name, origin = await prepared(egress, {"header": "x-key", "credentialUri": uri})
    assert (await egress.get_secure(actor, origin.port, name, ("x-key", "p"))).status == 503
    egress.provider.secrets[uri] = b"now"
    answer = await egress.get_secure(actor, origin.port, name, ("x-key", "p"))
    assert values(answer, "x-key") == ["now"]


# B125: a policy that no validator has seen
@pytest.mark.conformance("E-15")
@pytest.mark.parametrize(
    "entry",
    [
        {"header": "x-key", "credentialUri": "ate-secret://unknown.example/a/b"},
        {"header": "x-key", "credentialUri": "https://a.example/"},
        {"header": "host", "credentialUri": "ate-secret://secrets.example/a/b"},
        {"header": "content-length", "credentialUri": "ate-secret://secrets.example/a/b"},
    ],
    ids=["unknown provider", "bad uri", "host", "content-length"],
)
async def test_a_rule_that_cannot_be_served_is_500_and_nothing_leaves(
    egress: EgressStage, entry: dict[str, str]
) -> None:
    actor, name, origin = await prepared(egress, entry)
    answer = await egress.get_secure(actor, origin.port, name, ("x-key", "placeholder"))
    assert (answer.status, answer.head.get("ate-reason")) == (500, "credential-misconfigured")
    assert origin.exchanges == []


@pytest.mark.conformance("E-16")
async def test_an_actors_token_is_minted_for_its_incarnation(egress: EgressStage) -> None:
    source = {"audiences": ["https://api.example"], "expirationSeconds": 600}
    entry = {"header": "x-token", "prefix": "Bearer ", "actorJwt": source}
    actor, name, origin = await prepared(egress, entry)
    answer = await egress.get_secure(actor, origin.port, name, ("x-token", "placeholder"))
    assert values(answer, "x-token") == [f"Bearer token-of-{actor.split('/')[1]}"]
    (asked,) = [t for t in egress.api.tokens if t.actor.name == actor.split("/")[1]]
    assert list(asked.audience) == ["https://api.example"]
    assert asked.expiration_seconds == 600
    assert asked.actor_uid == egress.api.actors[actor].metadata.uid
