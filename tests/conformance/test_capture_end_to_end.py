"""A real actor dials out: relay, capture, gateway, origin; the agent and the worker are real processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.network import netns
from google.protobuf.json_format import ParseDict

from tests.conformance.conftest import EgressGateways, EgressWorld
from tests.support.actor_box import http_probe, template
from tests.support.egress_gateway import EgressDataplane, EgressSpec
from tests.support.egress_stage import EgressStage, http, https, passthrough
from tests.support.eventually import eventually
from tests.support.gvisor_box import runsc
from tests.support.name_server import NameServer
from tests.support.node import Node, node
from tests.support.origins import answering, echo
from tests.support.reaching_actor import command, told

SNIFF = 0.5
pytestmark = pytest.mark.egress_gateway(sniff=SNIFF)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def here(
    root: None,
    egress_dataplane: EgressDataplane,
    egress_gateways: EgressGateways,
    egress_world: EgressWorld,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Node]:
    gateway = await egress_gateways.shared(egress_dataplane, EgressSpec(sniff=SNIFF))
    address = f"{gateway.host}:{gateway.port}"
    where = tmp_path_factory.mktemp("node")
    async with node(where, "--egress-gateway-address", address) as made:
        made.registrar.actors = egress_world.pki.actors
        trust = str(egress_world.pki.pki.service_roots)
        await made.start_worker("worker-1", "--egress-gateway-trust", trust)
        yield made


@dataclass
class Running:
    """An actor on the node, known to the gateway's control plane as well."""

    node: Node
    egress: EgressStage
    handle: Any
    ref: str

    async def told(self, code: str) -> dict[str, Any]:
        return await told(await self.node.gateway(self.handle.worker), code)

    async def out(self, code: str) -> Any:
        said = await self.told(code)
        assert "error" not in said, said
        return said["out"]

    def allow(self, *rules: dict[str, Any]) -> None:
        """For the gateway, and for the relay."""
        self.egress.api.allow(self.ref, *rules)
        policy = ParseDict({"rules": list(rules)}, pb.EgressPolicy())
        policy.metadata.CopyFrom(self.egress.api.policies[self.ref].metadata)
        self.node.registrar.policies[self.handle.actor_uid] = policy

    async def resolves(self, name: str) -> bool:
        code = f"import socket\nout = socket.gethostbyname({name!r})"
        return "out" in await self.told(code)


async def started(
    where: Node,
    egress: EgressStage,
    *rules: dict[str, Any],
    boot: str = "",
    worker: str = "worker-1",
    sandbox: str = "",
) -> Running:
    name = f"agent-{uuid4().hex[:8]}"
    handle = where.handle(worker, str(uuid4()), name)
    running = Running(where, egress, handle, f"team/{name}")
    egress.api.put(running.ref, state="RESUMING")
    if rules:
        running.allow(*rules)
    made = template(*command(boot), probe=http_probe())
    made.sandbox_config.sandbox_class = sandbox
    await where.run(handle, made)
    egress.api.actors[running.ref].status.state = pb.ACTOR_STATE_RUNNING
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def actor(here: Node, egress: EgressStage) -> AsyncIterator[Running]:
    running = await started(here, egress)
    yield running
    await here.terminate(running.handle)


@pytest.mark.conformance("E-01", "E-03", "E-23")
async def test_an_actor_reaches_what_its_policy_allows_by_name(
    actor: Running, egress: EgressStage
) -> None:
    name, origin = await egress.web(echo)
    actor.allow(http(name, ports=[origin.port]))
    await eventually(lambda: actor.resolves(name))
    code = f"""
import socket
out = [socket.gethostbyname({name!r}), fetch("http://{name}:{origin.port}/path")]
"""
    address, (status, _, body) = await actor.out(code)
    assert address.startswith("198.18.")
    assert status == 200
    assert ["host", f"{name}:{origin.port}"] in json.loads(body)["fields"]
    [minted] = [m for m in actor.node.registrar.minted if m.actor_uid == actor.handle.actor_uid]
    assert f"{minted.actor.atespace}/{minted.actor.name}" == actor.ref


@pytest.mark.conformance("E-01", "E-08")
async def test_an_actor_reaches_tls_origins_intercepted_and_untouched(
    actor: Running, egress: EgressStage
) -> None:
    inside, one = await egress.secure_web(echo)
    past, other = await egress.secure_web(echo)
    actor.allow(https(inside, ports=[one.port]), passthrough(past, ports=[other.port]))
    await eventually(lambda: actor.resolves(past))
    for name, origin, roots in (
        (inside, one, egress.pki.interception.pem),
        (past, other, egress.pki.origins.pem),
    ):
        code = f"""
import ssl
context = ssl.create_default_context(cadata={roots.decode()!r})
out = fetch("https://{name}:{origin.port}/", context)
"""
        assert (await actor.out(code))[0] == 200, name


@pytest.mark.conformance("E-01")
async def test_a_booting_actor_reaches_out_before_it_is_ready(
    here: Node, egress: EgressStage
) -> None:
    name, origin = await egress.web(answering(200, b"needed to boot"))
    boot = f"import urllib.request\nout = urllib.request.urlopen('http://{name}:{origin.port}/').read().decode()"
    running = await started(here, egress, http(name, ports=[origin.port]), boot=boot)
    assert await running.out("out = boot") == "needed to boot"
    await here.terminate(running.handle)


# B079
@pytest.mark.conformance("E-22")
async def test_four_ways_to_fail_can_be_told_apart(
    actor: Running, egress: EgressStage, egress_dataplane: EgressDataplane
) -> None:
    denied, closed = egress.name("127.0.0.1"), egress.name("127.0.0.1")
    actor.allow(http(closed, ports=[1]), https(closed, ports=[2]))
    await eventually(lambda: actor.resolves(closed))
    assert await actor.told(f"import socket\nsocket.gethostbyname({denied!r})") == {
        "error": "gaierror",
        "errno": -2,  # no such name
        "text": "[Errno -2] Name or service not known",
    }
    raw = """
import socket
with socket.create_connection(("203.0.113.9", 22), timeout=20) as connection:
    connection.sendall(b"SSH-2.0-nobody\\r\\n")
    out = connection.recv(100).decode()
"""
    said = await actor.told(raw)
    # Stock Envoy ends where the native gateway resets; neither says a byte.
    ended = {"out": ""} if egress_dataplane.name == "envoy" else None
    assert said == ended or said["error"] == "ConnectionResetError"
    by_host = f"""
request = urllib.request.Request("http://203.0.113.9:80/", headers={{"host": {denied!r}}})
out = fetch(request)
"""
    status, fields, _ = await actor.out(by_host)
    assert (status, fields["ate-reason"]) == (403, "no-egress-rule")
    by_sni = f"""
import socket, ssl
context = ssl.create_default_context()
with socket.create_connection(("203.0.113.9", 443), timeout=20) as connection:
    context.wrap_socket(connection, server_hostname={denied!r})
"""
    refused = await actor.told(by_sni)
    assert refused["error"].startswith("SSL")
    assert "alert" in refused["text"].lower()
    status, fields, _ = await actor.out(f'out = fetch("http://{closed}:1/")')
    assert (status, fields["ate-reason"]) == (502, "origin-unreachable")


# B078
@pytest.mark.conformance("E-07")
async def test_who_waits_for_the_server_to_speak_is_cut_off_soon(
    actor: Running, egress: EgressStage, egress_dataplane: EgressDataplane
) -> None:
    actor.allow(http("a.example", ports=[25]))
    silent = """
import socket, time
began = time.monotonic()
with socket.create_connection(("203.0.113.9", 25), timeout=20) as connection:
    try:
        how = connection.recv(100).decode()
    except ConnectionResetError:
        how = "reset"
out = [how, time.monotonic() - began]
"""
    how, seconds = await actor.out(silent)
    # Stock Envoy ends where the native gateway resets.
    assert how in (("", "reset") if egress_dataplane.name == "envoy" else ("reset",))
    assert SNIFF * 0.8 < seconds < SNIFF + 3


@pytest.mark.conformance("E-23")
async def test_a_changed_policy_reaches_the_relay_within_its_bound(
    actor: Running, egress: EgressStage
) -> None:
    name = egress.name("127.0.0.1")
    assert not await actor.resolves(name)
    actor.allow(http(name))
    await eventually(lambda: actor.resolves(name), seconds=5)
    actor.allow(http("other.example"))

    async def gone() -> bool:
        return not await actor.resolves(name)

    await eventually(gone, seconds=5)


@pytest.mark.conformance("E-01")
async def test_a_thawed_actor_reaches_out_again(actor: Running, egress: EgressStage) -> None:
    name, origin = await egress.web(answering(200, b"there"))
    actor.allow(http(name, ports=[origin.port]))
    await eventually(lambda: actor.resolves(name))
    await actor.node.pause(actor.handle)
    await actor.node.thaw(actor.handle)
    await eventually(lambda: actor.resolves(name))
    assert (await actor.out(f'out = fetch("http://{name}:{origin.port}/")'))[2] == "there"


@pytest.mark.conformance("E-01")
async def test_what_runs_ends_with_the_actor(actor: Running, egress: EgressStage) -> None:
    name, origin = await egress.web(echo)
    actor.allow(http(name, ports=[origin.port]))
    kept = f"""
import socket, sys
sys.kept = socket.create_connection(("203.0.113.9", {origin.port}))
sys.kept.sendall(b"GET / HTTP/1.1\\r\\nhost: {name}\\r\\n\\r\\n")
out = sys.kept.recv(4096).decode()
"""
    assert (await actor.out(kept)).startswith("HTTP/1.1 200 ")
    await actor.node.checkpoint(actor.handle, actor.node.uri(actor.handle.actor_uid))
    lines = actor.node.workers["worker-1"].log.read_text().splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    own = [r for r in records if r.get("uid") == actor.handle.actor_uid]
    said = [r["message"] for r in own]
    [closed] = [r for r in own if r["message"] == "egress tunnel closed"]
    assert closed["actor"] == actor.ref
    assert closed["destination"] == f"203.0.113.9:{origin.port}"
    assert said[-1] == "egress closed"


# B072
@pytest.mark.conformance("E-01")
async def test_a_node_without_a_gateway_lets_nothing_out(
    tmp_path: Path, egress: EgressStage
) -> None:
    async with node(tmp_path) as where:
        await where.start_worker("worker-1")
        running = await started(where, egress, http("a.example"))
        dial = 'import socket\nsocket.create_connection(("203.0.113.9", 80), timeout=20)'
        assert (await running.told(dial))["error"] == "ConnectionRefusedError"


@pytest.mark.conformance("E-03")
async def test_an_actor_without_a_certificate_does_not_start(
    here: Node, egress: EgressStage
) -> None:
    registrar = here.registrar
    for refusal, told_as in (
        (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE),
        (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INTERNAL),
    ):
        registrar.refuse_minting = refusal
        try:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await started(here, egress)
        finally:
            registrar.refuse_minting = None
        assert caught.value.code() is told_as
    running = await started(here, egress)
    await here.terminate(running.handle)


# B134
@pytest.mark.conformance("E-03")
async def test_a_certificate_is_renewed_and_a_gap_is_made_up_for(
    here: Node, egress: EgressStage
) -> None:
    registrar = here.registrar
    name, origin = await egress.web(answering(200, b"there"))
    registrar.lifetime = 6
    try:
        running = await started(here, egress, http(name, ports=[origin.port]))

        def minted() -> int:
            return sum(m.actor_uid == running.handle.actor_uid for m in registrar.minted)

        async def reached() -> bool:
            said = await running.told(f'out = fetch("http://{name}:{origin.port}/", timeout=5)')
            return said.get("out", [0])[0] == 200

        async def cut_off() -> bool:
            return not await reached()

        assert await reached()
        await eventually(lambda: minted() == 2, seconds=20)
        assert await reached()
        kept = f"""
import socket, sys
sys.kept = socket.create_connection(("203.0.113.9", {origin.port}))
def again():
    sys.kept.sendall(b"GET / HTTP/1.1\\r\\nhost: {name}\\r\\n\\r\\n")
    return sys.kept.recv(4096).decode()
sys.again = again
out = again()
"""
        assert "200" in await running.out(kept)
        registrar.refuse_minting = grpc.StatusCode.UNAVAILABLE
        await eventually(cut_off, seconds=25)
        assert "200" in await running.out("import sys\nout = sys.again()"), "what runs lives on"
        await asyncio.sleep(2)
        assert await cut_off()
    finally:
        registrar.lifetime, registrar.refuse_minting = 3600, None
    await eventually(reached, seconds=20)
    assert minted() >= 3
    await here.terminate(running.handle)


@pytest.mark.conformance("E-23")
async def test_a_worker_may_ask_the_nodes_resolvers_for_allowed_names(
    here: Node, egress: EgressStage, egress_world: EgressWorld
) -> None:
    names: NameServer = egress.names
    trust = str(egress_world.pki.pki.service_roots)
    upstream = ("--dns-answers", "upstream", "--dns-upstream", names.address)
    await here.start_worker("worker-2", "--egress-gateway-trust", trust, *upstream)
    allowed, denied = egress.name("203.0.113.77"), egress.name("203.0.113.78")
    running = await started(here, egress, http(allowed), worker="worker-2")
    code = f"import socket\nout = socket.gethostbyname({allowed!r})"
    assert await running.out(code) == "203.0.113.77"
    assert not await running.resolves(denied)
    assert names.asked[denied] == 0
    await here.terminate(running.handle)


@pytest.mark.conformance("E-01", "E-02", "E-23")
async def test_an_actor_in_gvisor_goes_the_same_way(
    here: Node, egress: EgressStage, egress_world: EgressWorld
) -> None:
    """Its own network stack writes packets to the link: what the rules see is all that it can do."""
    trust = str(egress_world.pki.pki.service_roots)
    flags = ("--sandbox", "gvisor", "--runsc", str(runsc()), "--network-pool", "0")
    await here.start_worker("worker-3", "--egress-gateway-trust", trust, *flags)
    name, origin = await egress.web(answering(200, b"x" * 3_000_000))
    running = await started(
        here, egress, http(name, ports=[origin.port]), worker="worker-3", sandbox="gvisor"
    )
    prefix = here.workers["worker-3"].prefix
    [gateway] = [netns.path_of(n) for n in netns.names(prefix) if n.endswith("-at")]
    code = f"""
import socket
def outcome(kind, host, port):
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.settimeout(2)
        try:
            sock.connect((host, port))
            sock.send(b"x")
            return sock.recv(1) and "answered"
        except TimeoutError:
            return "silence"
        except OSError as e:
            return "refused"
dials = [
    outcome(socket.SOCK_STREAM, "169.254.17.1", 15001),
    outcome(socket.SOCK_STREAM, "169.254.169.254", 80),
    outcome(socket.SOCK_DGRAM, "8.8.8.8", 53),
    outcome(socket.SOCK_DGRAM, "203.0.113.9", 443),
]
status, _, body = fetch("http://{name}:{origin.port}/")
out = [socket.gethostbyname({name!r}), status, len(body), dials]
"""
    said = await told(gateway, code)
    assert "error" not in said, said
    address, status, length, dials = said["out"]
    assert address.startswith("198.18.")
    assert (status, length) == (200, 3_000_000)
    assert dials[:2] == ["refused", "refused"]
    assert "answered" not in dials
    await here.terminate(running.handle)
