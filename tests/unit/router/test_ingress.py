"""The whole process with a real Envoy, a scripted control plane and a real worker's end."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.eventually import eventually, within
from tests.support.origins import answering, echo
from tests.support.pki import Pki
from tests.support.raw_http1 import RawHttp1, request
from tests.unit.router.conftest import Start


async def test_each_request_asks_and_reaches_its_actor(start: Start) -> None:
    stage = await start()
    actor, origin = await stage.actor(echo)
    for path in ("/one", "/two"):
        assert (await stage.get(actor, path)).status == 200
    assert [head.target for head in origin.heads] == ["/one", "/two"]
    assert {head.get("host") for head in origin.heads} == {"app.example"}
    assert {head.get("ate-target-actor") for head in origin.heads} == {None}
    assert stage.api.calls[actor.ref] == 2


async def test_refusals_are_those_of_the_table(start: Start) -> None:
    stage = await start()
    before = stage.api.total
    malformed = await stage.get("Not-an-actor")
    assert (malformed.status, malformed.head.get("ate-reason")) == (404, "bad-target")
    assert stage.api.total == before
    unknown = await stage.get("team/nobody")
    assert (unknown.status, unknown.head.get("ate-reason")) == (404, "actor-not-found")
    ambiguous = await stage.ask(
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    assert (ambiguous.status, ambiguous.head.get("ate-reason")) == (400, "bad-request")


async def test_a_worker_with_another_identity_gets_no_byte(start: Start) -> None:
    stage = await start()
    origin = await stage.origin(echo)
    actor = stage.actor_on(stage.worker.ip, spiffe_id="spiffe://cluster.local/ns/default/sa/other")
    stage.worker.activate(actor.ref, origin.address)
    answer = await stage.get(actor)
    assert (answer.status, answer.head.get("ate-reason")) == (503, "worker-unreachable")
    assert answer.head.get("retry-after") is not None
    assert origin.exchanges == []


async def test_a_connect_reaches_the_port_that_it_names(start: Start) -> None:
    stage = await start()
    actor, default = await stage.actor(answering(500))
    other = await stage.origin(echo, port=9292, address=default.address)
    outer = await RawHttp1.open(stage.router.connect)
    stage.closing(outer.close)
    await outer.send(request("CONNECT", "x:9292", ("host", "x:9292"), actor.header))
    assert (await outer.head()).status == 200
    for path in ("/one", "/two"):
        inner = request("GET", path, ("host", "inner.example"), ("ate-target-actor", "team/other"))
        assert (await outer.ask(inner)).status == 200
    assert [head.target for head in other.heads] == ["/one", "/two"]
    assert {head.get("ate-target-actor") for head in other.heads} == {None}
    assert default.exchanges == []


async def test_sigterm_drains_releases_the_hook_and_exits(start: Start, tmp_path: Path) -> None:
    marker = tmp_path / "drained"
    marker.write_text("of an earlier run")
    stage = await start()
    assert not marker.exists()
    assert await stage.router.ready() == 200
    actor, _ = await stage.actor(answering(200, b"ok"))
    idle = await stage.http1()
    assert (await idle.ask(request("GET", "/", ("host", "a"), actor.header))).data == b"ok"
    assert await stage.router.process.stop() == 0
    assert await idle.rest() == b""
    assert marker.exists()


async def test_the_router_ends_when_its_envoy_does(start: Start) -> None:
    stage = await start()
    os.kill(stage.router.process.ready["envoy_pid"], signal.SIGKILL)
    assert await stage.router.process.wait() == 1
    assert "Envoy ended by signal 9" in stage.router.process.log


async def test_envoy_ends_when_its_router_is_killed(start: Start) -> None:
    stage = await start()
    envoy = Path(f"/proc/{stage.router.process.ready['envoy_pid']}/exe")
    assert envoy.exists()
    await stage.router.process.kill()
    await eventually(lambda: not envoy.exists())


async def test_a_certificate_that_envoy_refuses_ends_the_start_with_its_words(
    start: Start, pki: Pki
) -> None:
    broken = pki.write("broken.pem", b"no certificate")
    with pytest.raises(RuntimeError, match="Envoy refused its Secret resources") as caught:
        await within(start(envoy_cert_path=broken), 30)
    assert "certificate chain" in str(caught.value)


async def test_a_file_that_is_missing_is_named_with_its_flag(start: Start) -> None:
    with pytest.raises(RuntimeError, match="--ingress-client-ca-file: cannot read /nowhere"):
        await start(ingress_client_ca_file="/nowhere")
