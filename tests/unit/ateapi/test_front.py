"""The front carries calls as they are, says who calls, and answers nothing that is not its own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import atenet
import grpc
import grpc.aio
import pytest
from atenet.ateapi.front import Front, FrontSettings, grants_for
from atenet.ateapi.roles import DEFAULT_BINDINGS, Role
from atenet.errors import AteError
from atenet.identity import LocalIdentity, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import routersupport_pb2 as support_pb
from atenet.proto import routersupport_pb2_grpc as support_grpc
from atenet.rpc import MtlsChannel, fronted_auth_context, fronted_server, mtls_channel, spiffe_id_in

from tests.support.control_plane import ControlPlane, code_of, control_plane, ref, resume, suspend
from tests.support.eventually import eventually, within

BINARY = bytes(range(256))


@dataclass
class Behind:
    """A server with methods of every shape, behind a front."""

    identity: LocalIdentity
    front: Front
    server: grpc.aio.Server
    socket: Path
    aside: str
    counted: dict[str, int]
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    remaining: float | None = None
    _channels: list[MtlsChannel] = field(default_factory=list)

    def channel(self, spiffe_id: str = spiffe.ROUTER_ID) -> MtlsChannel:
        made = mtls_channel(
            self.front.address,
            credential=self.identity.credential(spiffe_id.rpartition("/")[2], spiffe_id),
            roots=self.identity.trust("service-dns"),
            server_name=spiffe.API_SERVER_NAME,
        )
        self._channels.append(made)
        return made

    # -- the methods

    async def say(self, request: bytes, context: Any) -> bytes:
        """Who called with which metadata; the request back in the trailers."""
        given = [
            (k, v.hex() if isinstance(v, bytes) else v) for k, v in context.invocation_metadata()
        ]
        await context.send_initial_metadata([("early", "1"), ("early-bin", BINARY)])
        context.set_trailing_metadata([("late", "2"), ("late-bin", request)])
        return json.dumps(
            {"peer": spiffe_id_in(fronted_auth_context(context)), "metadata": given}
        ).encode()

    async def fail(self, request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata([("late", "3")])
        return await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "nö: 100 %\n")

    async def echo(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    async def hang(self, request: bytes, context: Any) -> bytes:
        self.remaining = context.time_remaining()
        self.arrived.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return b"done"

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        return grpc.method_handlers_generic_handler(
            "test.Test",
            {
                "Say": grpc.unary_unary_rpc_method_handler(self.say),
                "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
                "Echo": grpc.stream_stream_rpc_method_handler(self.echo),
                "Hang": grpc.unary_unary_rpc_method_handler(self.hang),
            },
        )


@contextlib.asynccontextmanager
async def _behind(root: Path, directory: Path | None = None) -> AsyncIterator[Behind]:
    identity = LocalIdentity(root / "state")
    identity.ensure()
    counted: dict[str, int] = {}
    with fronted_server(directory or root) as (server, socket):
        settings = FrontSettings(
            listen="127.0.0.1:0",
            credential=identity.service_credential("ateapi", [spiffe.API_SERVER_NAME]),
            client_roots=identity.trust("pod-identity"),
            upstream=socket,
            store=root / "none.db",
            grants=grants_for(DEFAULT_BINDINGS),
            log_level="info",
        )
        front = Front(settings, lambda method, calls: counted.update({method: calls}))
        aside = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        made = Behind(identity, front, server, socket, aside, counted)
        server.add_generic_rpc_handlers((made.handlers(),))
        await server.start()
        await front.start()
        try:
            yield made
        finally:
            for channel in made._channels:
                await channel.close()
            made.release.set()
            await front.close(5)
            await server.stop(0)


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Behind]:
    async with _behind(tmp_path) as made:
        yield made


def _unary(channel: MtlsChannel, method: str) -> Any:
    return channel.unary_unary(f"/test.Test/{method}")


# ---------------------------------------------------------------- carried as they are


async def test_metadata_messages_and_trailers_arrive_as_they_were_sent(behind: Behind) -> None:
    call = _unary(behind.channel(), "Say")(
        b"ask", metadata=[("theirs", "a"), ("theirs", "b"), ("theirs-bin", BINARY)]
    )
    answer = json.loads(await call)
    given = answer["metadata"]
    assert [v for k, v in given if k == "theirs"] == ["a", "b"]
    assert ["theirs-bin", BINARY.hex()] in given
    assert dict(await call.initial_metadata())["early-bin"] == BINARY
    trailing = dict(await call.trailing_metadata())
    assert (trailing["late"], trailing["late-bin"]) == ("2", b"ask")


async def test_a_refusal_arrives_with_its_code_message_and_trailers(behind: Behind) -> None:
    call = _unary(behind.channel(), "Fail")(b"")
    assert await code_of(call) == ("FAILED_PRECONDITION", "nö: 100 %\n")
    assert dict(await call.trailing_metadata())["late"] == "3"


async def test_streams_run_both_ways_at_once(behind: Behind) -> None:
    call = behind.channel().stream_stream("/test.Test/Echo")()
    for number in range(100):
        sent = bytes([number]) * (number * 500)
        await call.write(sent)
        assert await call.read() == sent
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_a_caller_that_cancels_is_gone_for_the_server_too(behind: Behind) -> None:
    call = _unary(behind.channel(), "Hang")(b"")
    await behind.arrived.wait()
    call.cancel()
    await within(behind.cancelled.wait(), 5)


async def test_a_caller_that_breaks_off_is_gone_for_the_server_too(behind: Behind) -> None:
    channel = behind.channel()
    call = _unary(channel, "Hang")(b"")
    await behind.arrived.wait()
    await channel.close()
    with pytest.raises(asyncio.CancelledError):
        await call
    await within(behind.cancelled.wait(), 5)


async def test_the_deadline_is_the_server_s_too(behind: Behind) -> None:
    call = _unary(behind.channel(), "Hang")(b"", timeout=1.0)
    assert (await code_of(call))[0] == "DEADLINE_EXCEEDED"
    assert behind.remaining is not None
    assert 0 < behind.remaining <= 1.0
    await within(behind.cancelled.wait(), 5)


async def test_large_messages_pass_and_too_large_ones_are_refused_as_ever(behind: Behind) -> None:
    echo = behind.channel().stream_stream("/test.Test/Echo")
    for size, code in ((4_000_000, "OK"), (5_000_000, "RESOURCE_EXHAUSTED")):
        call = echo()
        await call.write(b"x" * size)
        await call.done_writing()
        with contextlib.suppress(grpc.aio.AioRpcError):
            assert len(await call.read()) == size
        assert (await call.code()).name == code


async def test_an_unknown_method_is_unimplemented(behind: Behind) -> None:
    assert (await code_of(_unary(behind.channel(), "Nothing")(b"")))[0] == "UNIMPLEMENTED"


async def test_a_warm_method_that_the_store_cannot_answer_is_carried(behind: Behind) -> None:
    """There is no such store, and nobody behind who has the method: it was carried, not answered."""
    call = behind.channel().unary_unary("/ateapi.Control/ResumeActor")
    for request in (resume("a").SerializeToString(), b"not a message", b"", b"x" * 100_000):
        assert (await code_of(call(request)))[0] == "UNIMPLEMENTED"


# ---------------------------------------------------------------- who calls


@pytest.mark.conformance("C-01")
async def test_nobody_can_say_to_be_somebody_else(behind: Behind) -> None:
    forged = [
        ("x-atenet-peer-uri", spiffe.EGRESS_ID),
        ("x-atenet-peer-uri", spiffe.CLI_ID),
        ("x-atenet-certified", "no"),
        ("x-atenet-peer-dns", "evil"),
        ("x-atenet-anything", "x"),
    ]
    answer = json.loads(await _unary(behind.channel(), "Say")(b"", metadata=forged))
    assert answer["peer"] == spiffe.ROUTER_ID
    internal = [(k, v) for k, v in answer["metadata"] if k.startswith("x-atenet-")]
    assert dict(internal) == {
        "x-atenet-certified": "yes",
        "x-atenet-peer-dns": spiffe.pod_dns_name(spiffe.ROUTER_ID),
        "x-atenet-peer-uri": spiffe.ROUTER_ID,
    }
    assert len(internal) == 3


@pytest.mark.conformance("C-01")
async def test_whoever_comes_past_the_front_is_not_believed(behind: Behind) -> None:
    """Where the same server has another address, as for people with tokens."""
    forged = [("x-atenet-certified", "yes"), ("x-atenet-peer-uri", spiffe.CLI_ID)]
    async with grpc.aio.insecure_channel(behind.aside) as channel:
        say = channel.unary_unary("/test.Test/Say")
        assert json.loads(await say(b"", metadata=forged))["peer"] is None


async def test_the_server_s_socket_is_its_owner_s_alone(behind: Behind) -> None:
    assert stat.S_IMODE(behind.socket.stat().st_mode) == 0o600


def test_grants_are_the_table_of_roles() -> None:
    grants = grants_for([*DEFAULT_BINDINGS, ("spiffe://x/y", Role.VIEWER)])
    assert grants[spiffe.ROUTER_ID] == ["ResumeActor", "Locate"]
    assert grants[spiffe.EGRESS_ID] == ["GetActor", "GetActorEgressPolicy"]
    assert grants[spiffe.CLI_ID] == ["GetActor", "GetActorEgressPolicy", "ResumeActor"]
    assert grants[spiffe.ATELET_ID] == []
    assert grants["spiffe://x/y"] == ["GetActor", "GetActorEgressPolicy"]


# ---------------------------------------------------------------- its life


async def test_a_front_that_dies_comes_back_at_the_same_address(behind: Behind) -> None:
    channel = behind.channel()
    await _unary(channel, "Say")(b"")
    assert behind.front._process is not None
    os.kill(behind.front._process.pid, signal.SIGKILL)

    async def answers() -> bool:
        with contextlib.suppress(grpc.aio.AioRpcError):
            await _unary(channel, "Say")(b"", timeout=1)
            return True
        return False

    await eventually(answers)


async def test_callers_are_told_to_retry_when_nobody_is_behind(behind: Behind) -> None:
    call = _unary(behind.channel(), "Hang")(b"")
    await behind.arrived.wait()
    await behind.server.stop(0)
    assert (await code_of(call))[0] in ("UNAVAILABLE", "CANCELLED")
    assert (await code_of(_unary(behind.channel(), "Say")(b"")))[0] == "UNAVAILABLE"


async def test_what_runs_ends_before_it_closes(behind: Behind) -> None:
    call = _unary(behind.channel(), "Hang")(b"")
    await behind.arrived.wait()
    closing = asyncio.ensure_future(behind.front.close(10))

    async def refuses() -> bool:
        late = behind.channel()
        code = (await code_of(_unary(late, "Fail")(b"", timeout=2)))[0]
        return code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")

    await eventually(refuses)
    assert not closing.done()
    behind.release.set()
    assert await call == b"done"
    await closing


async def test_a_stop_ends_a_stream_of_look_ups_in_order(behind: Behind) -> None:
    call = support_grpc.RouterSupportStub(behind.channel()).Locate()
    await call.write(support_pb.LocateRequest(actor=ref("nobody")))
    assert not (await call.read()).HasField("actor")
    await behind.front.close(30)
    # What is cut has a text that says so.
    assert (await call.code(), await call.details()) == (grpc.StatusCode.UNAVAILABLE, "")


async def test_a_deep_directory_and_an_old_socket_do_not_matter(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 60] * 3)
    deep.mkdir(parents=True)
    async with _behind(tmp_path, deep) as first:
        old = deep / "front.1.0.sock"
        os.link(first.socket, old)
        await _unary(first.channel(), "Say")(b"")
    assert list(deep.iterdir()) == [old]
    async with _behind(tmp_path, deep) as second:
        assert list(deep.iterdir()) == [second.socket]


async def test_a_taken_address_is_an_error_at_the_start(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        with pytest.raises(AteError, match=r"cannot listen on.*\nhint: is the port taken"):
            async with plane.replica("two").in_process(
                front="auto", listen=plane.addresses["grpc"]
            ):
                pass


def _settings(tmp_path: Path, **other: Any) -> FrontSettings:
    identity = LocalIdentity(tmp_path / "state")
    identity.ensure()
    settings = FrontSettings(
        listen="127.0.0.1:0",
        credential=identity.service_credential("ateapi", [spiffe.API_SERVER_NAME]),
        client_roots=identity.trust("pod-identity"),
        upstream=tmp_path / "none.sock",
        store=tmp_path / "none.db",
        grants={},
        log_level="info",
    )
    return dataclasses.replace(settings, **other)


async def _refusal(settings: FrontSettings) -> AteError:
    with pytest.raises(AteError) as refused:
        await Front(settings, lambda method, calls: None).start()
    return refused.value


@pytest.mark.parametrize("which", ["credential", "client_roots"])
async def test_an_unusable_file_is_named_and_no_port_is_blamed(tmp_path: Path, which: str) -> None:
    missing = tmp_path / "gone.pem"
    refused = await _refusal(_settings(tmp_path, **{which: missing}))
    assert str(missing) in refused.message
    assert "listen" not in str(refused)
    assert "port" not in str(refused)


async def test_an_engine_that_does_not_know_what_it_is_told_is_named(tmp_path: Path) -> None:
    """As one of another version does not."""
    refused = await _refusal(_settings(tmp_path, grants={"spiffe://a/b": ["Unheard"]}))
    assert "Unheard" in refused.message
    assert refused.hint is not None
    assert "version" in refused.hint


async def test_an_engine_without_a_front_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "old" / "atenet"
    package.mkdir(parents=True)
    # Found before ours by the process that is started, and by nobody else.
    own = Path(atenet.__file__).parent
    (package / "__init__.py").write_text(f"__path__.append({str(own)!r})\n")
    (package / "_engine.py").write_text(
        "class EngineError(Exception): ...\ndef log_to_stderr(process, level): ...\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    refused = await _refusal(_settings(tmp_path))
    assert "ApiFront" in refused.message
    assert refused.hint is not None
    assert "version" in refused.hint


async def test_a_front_that_ends_without_a_word_is_told_with_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken" / "atenet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    refused = await _refusal(_settings(tmp_path))
    assert "exit code 7" in refused.message
    assert "standard error" in str(refused.hint)


# ---------------------------------------------------------------- before a real control plane


@pytest.mark.conformance("C-03")
async def test_it_answers_what_the_control_plane_would(tmp_path: Path) -> None:
    """Every answer, with and without a front, on the same store: code, message and bytes."""
    async with control_plane(tmp_path) as plane:
        plain = plane.replica("plain")
        async with plane.in_process(front="auto"), plain.in_process():
            await plane.seed("running", "asleep")
            await plane.register()
            await plane.control().ResumeActor(resume("running"))
            references = [
                ref("running"),
                ref("nobody"),
                ref("running", "nowhere"),
                ref("", ""),
                ref("UPPER"),
                pb.ObjectRef(name="running"),
            ]
            gets = [pb.GetActorRequest(actor=r) for r in [*references, ref("asleep")]]
            gets.append(pb.GetActorRequest())
            resumes = [pb.ResumeActorRequest(actor=r) for r in references]
            await _allow(plane, "running")
            policies = [
                pb.GetActorEgressPolicyRequest(actor=r) for r in [*references, ref("asleep")]
            ]
            policies.append(pb.GetActorEgressPolicyRequest())
            for caller in (spiffe.CLI_ID, spiffe.ROUTER_ID, spiffe.EGRESS_ID, spiffe.ATELET_ID):
                stubs = plane.control(caller), plain.control(caller)
                for method, requests in (
                    ("GetActor", gets),
                    ("GetActorEgressPolicy", policies),
                    ("ResumeActor", resumes),
                ):
                    for request in requests:
                        fronted, direct = [
                            await _outcome(getattr(stub, method)(request)) for stub in stubs
                        ]
                        assert fronted == direct, (caller, method, request)


async def _allow(plane: ControlPlane, name: str, host: str = "a.example") -> None:
    rule = pb.EgressRule(https=pb.HTTPSRule(hostnames=[host]))
    metadata = pb.ResourceMetadata(atespace=ref(name).atespace, name="default")
    policy = pb.EgressPolicy(metadata=metadata, rules=[rule])
    request = pb.CreateActorEgressPolicyRequest(actor=ref(name), egress_policy=policy)
    await plane.control().CreateActorEgressPolicy(request)


@pytest.mark.conformance("C-07")
async def test_a_policy_is_never_answered_from_memory_nor_for_an_earlier_actor(
    tmp_path: Path,
) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        control, gateway = plane.control(), plane.control(spiffe.EGRESS_ID)
        asked = pb.GetActorEgressPolicyRequest(actor=ref("a"))
        seen = set()
        for number in range(5):
            await plane.seed("a")
            assert (await _outcome(gateway.GetActorEgressPolicy(asked)))[
                0
            ] is grpc.StatusCode.NOT_FOUND
            await _allow(plane, "a", f"host-{number}.example")
            found = await gateway.GetActorEgressPolicy(asked)
            assert list(found.rules[0].https.hostnames) == [f"host-{number}.example"]
            seen.add(found.metadata.uid)
            await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a")))
        assert len(seen) == 5


async def _outcome(call: Any) -> Any:
    try:
        return (await call).SerializeToString(deterministic=True)
    except grpc.aio.AioRpcError as e:
        return e.code(), e.details()


@pytest.mark.conformance("C-03")
async def test_a_suspended_actor_is_not_answered_for_from_memory(tmp_path: Path) -> None:
    # No worker is lost meanwhile: it sends no heartbeats.
    async with (
        control_plane(tmp_path, worker_timeout=60.0) as plane,
        plane.in_process(front="auto"),
    ):
        await plane.seed("a")
        await plane.register()
        control = plane.control()
        for _ in range(20):
            assert (await control.ResumeActor(resume("a"))).resumed
            assert not (await control.ResumeActor(resume("a"))).resumed
            await control.SuspendActor(suspend("a"))
            state = (await control.GetActor(pb.GetActorRequest(actor=ref("a")))).status.state
            assert state == pb.ACTOR_STATE_SUSPENDED


async def test_warm_calls_are_counted_like_all_others(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane, plane.in_process(front="auto"):
        await plane.seed("a")
        await plane.register()
        control = plane.control()
        for _ in range(10):
            await control.ResumeActor(resume("a"))
        # At once: whoever looks at the page sees every call that was answered before.
        assert await plane.metric("ateapi_calls_total", method="ResumeActor", code="OK") == 10


@pytest.mark.parametrize("given", ["maybe", ""])
async def test_an_unknown_choice_is_named(tmp_path: Path, given: str) -> None:
    async with control_plane(tmp_path) as plane:
        with pytest.raises(AteError, match="--front"):
            plane.settings(front=given)
