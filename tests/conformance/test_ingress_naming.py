"""How a request names its actor, and what of that the actor sees."""

import pytest

from tests.support import raw_h2
from tests.support.origins import Exchange, answering, echo
from tests.support.raw_http1 import request
from tests.support.stage import Stage, new_ref

LONGEST = "x" * 63

MALFORMED = {
    "empty": "",
    "no slash": "demo",
    "two slashes": "a/b/c",
    "empty actor": "a/",
    "empty atespace": "/b",
    "only a slash": "/",
    "upper case atespace": "Team/agent",
    "upper case actor": "team/Agent",
    "underscore": "team_a/agent",
    "actor over 63": f"a/{LONGEST}y",
    "atespace over 63": f"{LONGEST}y/a",
    "leading hyphen": "team/-agent",
    "trailing hyphen": "team/agent-",
    "leading hyphen of the atespace": "-team/agent",
    "inner space": "team /agent",
    "inner tab": "team/\tagent",
    "dot": "team.a/agent",
    "percent escape": "team%2Fagent",
    "list": "team/agent,team/agent",
    "list with a space": "team/agent, team/agent",
    "not ascii": "team/\xe4gent",
    "trailing slash": "team/agent/",
}


@pytest.mark.conformance("I-01")
@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_name_is_404_and_the_control_plane_hears_nothing(
    stage: Stage, value: str
) -> None:
    before = stage.api.total
    answer = await stage.request(value)
    assert (answer.status, answer.head.get("ate-reason")) == (404, "bad-target")
    assert stage.api.total == before


@pytest.mark.conformance("I-01")
@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_name_over_http2_is_refused_the_same(stage: Stage, value: str) -> None:
    before = stage.api.total
    answer = await (await stage.http2()).ask(raw_h2.get("/", value))
    assert answer.status == 404
    assert stage.api.total == before


@pytest.mark.conformance("I-01")
async def test_a_request_that_names_nobody_is_404(stage: Stage) -> None:
    # B003: a legacy Host alone decides nothing.
    before = stage.api.total
    answer = await stage.ask(request("GET", "/", ("host", "agent-7.team-a.actors.example")))
    assert (answer.status, answer.head.get("ate-reason")) == (404, "bad-target")
    assert stage.api.total == before


@pytest.mark.conformance("I-01")
async def test_a_trailing_tab_in_the_value_is_not_trimmed(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    before = stage.api.total
    answer = await stage.ask(
        b"GET / HTTP/1.1\r\nhost: app.example\r\nate-target-actor: "
        + actor.ref.encode()
        + b"\t\r\n\r\n"
    )
    assert answer.status == 404
    assert (stage.api.total, origin.exchanges) == (before, [])


@pytest.mark.conformance("I-01")
@pytest.mark.parametrize("name", ["ate-target-actor\t", "ate-target-actor ", "\tate-target-actor"])
async def test_white_space_in_the_headers_name_is_never_trimmed(stage: Stage, name: str) -> None:
    # B015
    actor, origin = await stage.actor(echo)
    before = stage.api.total
    named = [field for field in raw_h2.get("/", actor.ref) if field[0] != "ate-target-actor"]
    status = await stage.http2_status([*named, (name, actor.ref)])
    assert status in (400, 404)
    assert (stage.api.total, origin.exchanges) == (before, [])


@pytest.mark.conformance("I-01")
async def test_the_longest_names_are_carried(stage: Stage) -> None:
    origin = await stage.origin(echo)
    ref = f"{LONGEST}/{LONGEST}"
    stage.actor_at(origin.address, ref=ref)
    assert (await stage.get(ref)).status == 200


@pytest.mark.conformance("I-01")
async def test_the_headers_name_is_matched_in_any_case(stage: Stage) -> None:
    actor, _ = await stage.actor(echo)
    answer = await stage.ask(
        request("GET", "/", ("Host", "app.example"), ("Ate-Target-ACTOR", actor.ref))
    )
    assert answer.status == 200


@pytest.mark.conformance("I-02")
@pytest.mark.parametrize(
    "names", [("ate-target-actor",) * 2, ("ate-target-actor", "Ate-Target-Actor")]
)
@pytest.mark.parametrize("same", [True, False], ids=["equal values", "different values"])
async def test_the_header_twice_is_404(stage: Stage, names: tuple[str, str], same: bool) -> None:
    # B003
    actor, origin = await stage.actor(echo)
    other = actor if same else (await stage.actor(echo))[0]
    before = stage.api.total
    answer = await stage.ask(
        request("GET", "/", ("host", "app.example"), (names[0], actor.ref), (names[1], other.ref))
    )
    assert answer.status == 404
    assert (stage.api.total, origin.exchanges) == (before, [])


@pytest.mark.conformance("I-02")
@pytest.mark.parametrize("same", [True, False], ids=["equal values", "different values"])
async def test_the_header_twice_over_http2_is_404(stage: Stage, same: bool) -> None:
    actor, origin = await stage.actor(echo)
    second = actor.ref if same else new_ref()
    answer = await (await stage.http2()).ask(
        raw_h2.get("/", actor.ref, ("ate-target-actor", second))
    )
    assert (answer.status, origin.exchanges) == (404, [])


@pytest.mark.conformance("I-03")
@pytest.mark.parametrize(
    "host", ["app.example", "App.Example:8123", "localhost:8000", "10.1.2.3:80", "[::1]:99"]
)
async def test_host_reaches_the_actor_unchanged(stage: Stage, host: str) -> None:
    actor, origin = await stage.actor(echo)
    answer = await stage.ask(request("GET", "/", ("host", host), actor.header))
    assert answer.status == 200
    assert origin.heads[0].all("host") == [host]


@pytest.mark.conformance("I-03")
@pytest.mark.parametrize("authority", ["app.example", "app.example:8123"])
async def test_authority_reaches_the_actor_as_host(stage: Stage, authority: str) -> None:
    actor, origin = await stage.actor(echo)
    answer = await (await stage.http2()).ask(raw_h2.get("/", actor.ref, authority=authority))
    assert answer.status == 200
    assert origin.heads[0].all("host") == [authority]


@pytest.mark.conformance("I-03")
async def test_a_host_that_names_another_actor_decides_nothing(stage: Stage) -> None:
    # B003
    actor, origin = await stage.actor(echo)
    other, bystander = await stage.actor(echo)
    host = ".".join(reversed(other.ref.split("/")))
    answer = await stage.ask(request("GET", "/", ("host", host), actor.header))
    assert answer.status == 200
    assert (len(origin.exchanges), bystander.exchanges) == (1, [])


@pytest.mark.conformance("I-03")
@pytest.mark.parametrize(
    "target", ["/", "/a//b/../c?x=%2F&y=1&&", "/%7Euser/%2e%2e/", "/?", "/caf%C3%A9"]
)
async def test_the_path_reaches_the_actor_byte_for_byte(stage: Stage, target: str) -> None:
    actor, origin = await stage.actor(echo)
    assert (await stage.request(actor, "GET", target)).status == 200
    assert origin.heads[0].target == target


@pytest.mark.conformance("I-04")
async def test_routing_headers_do_not_reach_the_actor(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    claimed = [
        ("x-ate-assignment-stale", "true"),
        ("X-Ate-Actor-Uid", "forged"),
        ("x-ate-anything", "1"),
    ]
    answer = await stage.request(actor, "GET", "/", *claimed, ("x-kept", "yes"))
    assert answer.status == 200
    seen = origin.heads[0]
    assert not [name for name in seen.names if name.startswith(("ate-", "x-ate-"))]
    assert seen.get("x-kept") == "yes"


@pytest.mark.conformance("I-04")
async def test_routing_headers_over_http2_do_not_reach_the_actor(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    await (await stage.http2()).ask(raw_h2.get("/", actor.ref, ("x-ate-assignment-stale", "true")))
    assert not [name for name in origin.heads[0].names if name.startswith(("ate-", "x-ate-"))]


@pytest.mark.conformance("I-04")
async def test_what_an_actor_says_under_internal_names_is_removed(stage: Stage) -> None:
    said = [
        ("ate-target-actor", "a/b"),
        ("x-ate-assignment-stale", "true"),
        ("X-Ate-Other", "1"),
        ("x-own", "kept"),
    ]
    actor, _ = await stage.actor(answering(200, b"ok", *said))
    answer = await stage.get(actor)
    assert not [name for name in answer.head.names if name.startswith(("ate-", "x-ate-"))]
    assert answer.head.get("x-own") == "kept"


@pytest.mark.conformance("I-04")
async def test_internal_names_in_trailers_are_removed_both_ways(stage: Stage) -> None:
    trailers = b"0\r\nx-ate-assignment-stale: true\r\nate-reason: forged\r\nx-sum: 1\r\n\r\n"

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        await exchange.send(head + b"1\r\ny\r\n" + trailers)

    actor, origin = await stage.actor(handler)
    head = request("POST", "/", ("host", "a"), actor.header, ("transfer-encoding", "chunked"))
    answer = await stage.ask(head + b"1\r\nx\r\n" + trailers)
    for seen in (origin.exchanges[0].trailers, answer.body.trailers):
        assert [name for name, _ in seen if name.startswith(("ate-", "x-ate-"))] == []


@pytest.mark.conformance("I-05")
@pytest.mark.parametrize("host", ["localhost:8000", "app.example:443", "app.example:9"])
async def test_a_plain_request_goes_to_port_80(stage: Stage, host: str) -> None:
    # B002: a forwarder's port in Host is not the actor's port.
    actor, origin = await stage.actor(echo)
    decoy = await stage.origin(
        answering(500), port=int(host.rsplit(":", 1)[1]), address=origin.address
    )
    answer = await stage.ask(request("GET", "/", ("host", host), actor.header))
    assert answer.status == 200
    assert (len(origin.exchanges), decoy.exchanges) == (1, [])


@pytest.mark.conformance("I-05")
async def test_a_plain_request_over_http2_goes_to_port_80(stage: Stage) -> None:
    actor, origin = await stage.actor(echo)
    decoy = await stage.origin(answering(500), port=8000, address=origin.address)
    answer = await (await stage.http2()).ask(raw_h2.get("/", actor.ref, authority="localhost:8000"))
    assert answer.status == 200
    assert (len(origin.exchanges), decoy.exchanges) == (1, [])
