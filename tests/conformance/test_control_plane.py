"""Section C of the conformance table, against a real control plane over mTLS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.ateapi.store import Transaction
from atenet.ateapi.store.opening import open_store
from atenet.identity import Authority, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import ateapi_pb2_grpc as pb_grpc
from atenet.rpc import MtlsChannel, mtls_channel

from tests.support.control_plane import (
    ControlPlane,
    actor,
    code_of,
    control_plane,
    ref,
    resume,
    suspend,
)
from tests.support.eventually import eventually
from tests.support.issue import odd_credential

pytestmark = pytest.mark.usefixtures("on_each_store")

Codes = grpc.StatusCode


# Longer than a hundred resumes take on a busy machine: their workers send no heartbeats.
PATIENT = 60.0


@contextlib.asynccontextmanager
async def _running(root: Path, **limits: float) -> AsyncIterator[ControlPlane]:
    async with control_plane(root, **limits) as plane, plane.in_process():
        yield plane


# ---------------------------------------------------------------- C-01: who may call


@pytest.mark.conformance("C-01")
async def test_known_callers_may_do_what_their_role_allows(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        (made,) = await plane.seed("a")
        await plane.register()
        get = pb.GetActorRequest(actor=ref("a"))
        router, gateway = plane.control(spiffe.ROUTER_ID), plane.control(spiffe.EGRESS_ID)
        assert (await router.ResumeActor(resume("a"))).resumed
        assert (await gateway.GetActor(get)).metadata.uid == made.metadata.uid
        assert (await plane.control().ListActors(pb.ListActorsRequest())).actors
        stranger = plane.control(spiffe.pod_id("default", "local"))
        for denied in (
            router.GetActor(get),
            router.SuspendActor(suspend("a")),
            gateway.ResumeActor(resume("a")),
            gateway.ListActors(pb.ListActorsRequest()),
            stranger.ResumeActor(resume("a")),
            plane.control(spiffe.ATELET_ID).GetActor(get),
            plane.control().MintActorJWT(pb.MintActorJWTRequest(actor=ref("a"))),
        ):
            assert (await code_of(denied))[0] == "PERMISSION_DENIED"


@pytest.mark.conformance("C-01")
async def test_unknown_callers_are_unauthenticated(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        authority = plane.identity.authority("pod-identity")
        path = plane.identity.root / "odd.pem"
        for uris in ([], [spiffe.ROUTER_ID, spiffe.EGRESS_ID]):
            odd_credential(path, authority, uris=uris, dns=["odd"])
            async with _channel(plane, path) as channel:
                stub = pb_grpc.ControlStub(channel)
                assert (await code_of(stub.ResumeActor(resume("a"))))[0] == "UNAUTHENTICATED"
        odd_credential(path, Authority.create("foreign"), uris=[spiffe.ROUTER_ID])
        async with _channel(plane, path) as channel:
            calling = pb_grpc.ControlStub(channel).ResumeActor(resume("a"))
            assert (await code_of(calling))[0] == "UNAVAILABLE", "refused in the handshake"


def _channel(plane: ControlPlane, credential: Path) -> MtlsChannel:
    return mtls_channel(
        plane.addresses["grpc"],
        credential=credential,
        roots=plane.identity.trust("service-dns"),
        server_name=spiffe.API_SERVER_NAME,
    )


# ---------------------------------------------------------------- C-02: killed (see also test_control_plane_kills)


@pytest.mark.conformance("C-02")
async def test_a_retry_right_after_the_restart_is_as_good(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as plane:
        async with plane.in_its_own_process(stop_at="resume.started"):
            await plane.seed("a")
            await plane.register(slots=1)
            await code_of(plane.control().ResumeActor(resume("a")))
            await plane.killed()
        async with plane.in_its_own_process():
            # Aborted while the control plane continues it by itself: the router retries that.
            answer = await _resumed(plane, "a", Codes.ABORTED)
            assert answer.actor.status.state == pb.ACTOR_STATE_RUNNING
            await _slots_are(plane, allocated=1)


async def _resumed(
    plane: ControlPlane, name: str, *retried: grpc.StatusCode
) -> pb.ResumeActorResponse:
    """Resumes as the router does: again and again while the answer is one of these codes."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await plane.control().ResumeActor(resume(name))
            except grpc.aio.AioRpcError as e:
                if e.code() not in retried:
                    raise
                await asyncio.sleep(0.05)


async def _slots_are(plane: ControlPlane, *, allocated: int) -> None:
    listed = (await plane.control().ListWorkers(pb.ListWorkersRequest())).workers
    assert [w.status.allocated.actors for w in listed] == [allocated]


# ---------------------------------------------------------------- C-03: warm reads


@pytest.mark.conformance("C-03")
async def test_warm_reads_take_no_lock(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        other = await open_store(plane.settings().store_location)
        entered, leave = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold_the_write_lock(tx: Transaction) -> None:
            tx.actors.get("team-a", "a")  # and the row's own, where rows have some
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(10)

        writing = asyncio.create_task(other.write(hold_the_write_lock))
        await entered.wait()
        try:
            answer = await plane.control().ResumeActor(resume("a"), timeout=2)
            assert not answer.resumed
        finally:
            leave.set()
            await writing
            await other.close()


# ---------------------------------------------------------------- C-04: claims


@pytest.mark.conformance("C-04")
async def test_a_hundred_resumes_never_exceed_the_slots(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(100)]
    async with _running(tmp_path, worker_timeout=PATIENT) as plane:
        await plane.seed(*names)
        await plane.register("worker-1", slots=3)
        await plane.register("worker-2", slots=4)
        control = plane.control()

        async def one(name: str) -> str:
            try:
                await control.ResumeActor(resume(name))
            except grpc.aio.AioRpcError as e:
                return e.code().name
            return "OK"

        outcomes = await asyncio.gather(*(one(name) for name in names))
        assert outcomes.count("OK") == 7
        assert outcomes.count("RESOURCE_EXHAUSTED") == 93
        assert len(plane.atelet.hosted["worker-1"]) == 3
        assert len(plane.atelet.hosted["worker-2"]) == 4


@pytest.mark.conformance("C-04")
async def test_two_control_planes_never_exceed_the_slots(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(100)]
    async with control_plane(tmp_path, worker_timeout=PATIENT) as first:
        second = ControlPlane(tmp_path, first.identity, first.atelet, worker_timeout=PATIENT)
        async with first.in_process(), second.in_process():
            await first.seed(*names)
            await first.register(slots=1)
            stubs = [first.control(), second.control()]

            async def one(index: int) -> str:
                try:
                    await stubs[index % 2].ResumeActor(resume(names[index]))
                except grpc.aio.AioRpcError as e:
                    return e.code().name
                return "OK"

            outcomes = await asyncio.gather(*(one(i) for i in range(100)))
            assert sorted(set(outcomes)) == ["OK", "RESOURCE_EXHAUSTED"]
            assert outcomes.count("OK") == 1
            assert len(first.atelet.hosted["worker-1"]) == 1


@pytest.mark.conformance("C-04")
async def test_two_control_planes_do_not_run_one_actor_twice(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as first:
        second = ControlPlane(tmp_path, first.identity, first.atelet)
        async with first.in_process(), second.in_process():
            await first.seed("a")
            await first.register(slots=2)
            release = first.atelet.stall("Run")
            running = asyncio.ensure_future(first.control().ResumeActor(resume("a")))
            await first.atelet.arrived("Run")
            assert (await code_of(second.control().ResumeActor(resume("a"))))[0] == "ABORTED"
            release()
            assert (await running).resumed
            assert first.atelet.count("Run") == 1


@pytest.mark.conformance("C-04")
async def test_only_fitting_workers_are_claimed(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed()
        control = plane.control()
        await control.CreateActor(pb.CreateActorRequest(actor=actor("a", disk="fast")))
        await plane.register("worker-1", disk="slow")
        assert (await code_of(control.ResumeActor(resume("a"))))[0] == "RESOURCE_EXHAUSTED"
        await plane.register("worker-2", disk="fast")
        await control.DrainWorker(pb.DrainWorkerRequest(worker=pb.ObjectRef(name="worker-2")))
        assert (await code_of(control.ResumeActor(resume("a"))))[0] == "RESOURCE_EXHAUSTED"
        await plane.register("worker-3", disk="fast")
        answer = await control.ResumeActor(resume("a"))
        assert answer.actor.status.worker_assignment.worker.name == "worker-3"


# ---------------------------------------------------------------- C-05: lost workers


@pytest.mark.conformance("C-05")
async def test_a_silent_worker_loses_its_actors_and_they_resume_elsewhere(tmp_path: Path) -> None:
    async with _running(tmp_path, worker_timeout=0.8, node_timeout=4.0) as plane:
        await plane.seed("a")
        async with plane.heartbeats("worker-1", slots=1):
            await plane.until_registered("worker-1")
            await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        suspended = await plane.until("a", "SUSPENDED")
        assert suspended.status.external_snapshot.snapshot_uri
        async with plane.heartbeats("worker-2", slots=1):
            await plane.until_registered("worker-2")
            answer = await plane.control().ResumeActor(resume("a"))
            assert answer.actor.status.worker_assignment.worker.name == "worker-2"

            async def only_the_other_is_known() -> bool:
                listed = await plane.control().ListWorkers(pb.ListWorkersRequest())
                return [w.metadata.name for w in listed.workers] == ["worker-2"]

            # Until its node counts as lost too, what that keeps may be asked for in its name.
            await eventually(only_the_other_is_known, 20)


@pytest.mark.conformance("C-05")
async def test_a_restarted_worker_loses_its_actors_and_its_slots_are_free(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a", "b")
        await plane.register(slots=1, epoch=1)
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        await plane.register(slots=1, epoch=2)
        await plane.until("a", "SUSPENDED", seconds=3)
        answer = await plane.control().ResumeActor(resume("b"))
        assert answer.actor.status.worker_assignment.worker_epoch == 2


@pytest.mark.conformance("C-05")
async def test_an_agent_that_knows_only_the_new_epoch_is_asked_in_its_name(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register(epoch=1)
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        plane.atelet.always(
            "Checkpoint",
            lambda r: None if r.handle.worker_epoch == 2 else Codes.FAILED_PRECONDITION,
        )
        await plane.register(epoch=2)
        await plane.until("a", "SUSPENDED")


@pytest.mark.conformance("C-05")
async def test_an_actor_whose_state_is_lost_crashes(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a", "b")
        await plane.register(slots=1, epoch=1)
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        plane.atelet.always("Checkpoint", Codes.NOT_FOUND)
        await plane.register(slots=1, epoch=2)
        crashed = await plane.until("a", "CRASHED")
        assert "NOT_FOUND" in crashed.status.crash.message
        assert (await plane.control().ResumeActor(resume("b"))).resumed


@pytest.mark.conformance("C-05")
async def test_a_node_that_stays_away_takes_its_unsaved_files_with_it(tmp_path: Path) -> None:
    async with _running(tmp_path, worker_timeout=0.5, node_timeout=1.5) as plane:
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.always("Checkpoint", Codes.UNAVAILABLE)
        await plane.until("a", "SUSPENDING")
        await plane.until("a", "CRASHED")


@pytest.mark.conformance("C-05")
async def test_an_actor_that_its_worker_no_longer_hosts_is_recovered(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        await plane.register()
        assert await plane.state("a") == "RUNNING", "one heartbeat may be older than the resume"
        await plane.register()
        await plane.until("a", "SUSPENDED")


@pytest.mark.conformance("C-05")
async def test_a_worker_that_stops_in_order_says_so_with_its_last_heartbeat(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a", "b")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].clear()
        await plane.register(draining=True)
        await plane.until("a", "SUSPENDED", seconds=3)
        code, _ = await code_of(plane.control().ResumeActor(resume("b")))
        assert code == "RESOURCE_EXHAUSTED"


@pytest.mark.conformance("C-05")
async def test_a_start_that_a_stopping_worker_refuses_goes_elsewhere(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register("worker-1")
        plane.atelet.always(
            "Run", lambda r: Codes.UNAVAILABLE if r.handle.worker == "worker-1" else None
        )
        await code_of(plane.control().ResumeActor(resume("a")))
        await plane.register("worker-1", draining=True)
        await plane.register("worker-2")
        answer = await plane.control().ResumeActor(resume("a"))
        assert answer.actor.status.worker_assignment.worker.name == "worker-2"


@pytest.mark.conformance("C-05")
async def test_a_moved_actor_is_not_terminated_in_the_name_of_its_old_worker(
    tmp_path: Path,
) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register("worker-1")
        running = (await plane.control().ResumeActor(resume("a"))).actor
        for node, ended in (("node-1", 0), ("node-2", 1)):
            old = plane.registration("worker-0", node=node)
            old.hosted_actor_uids[:] = [running.metadata.uid]
            for _ in range(3):  # it comes up, then two heartbeats say the same
                await plane.worker_service(node).RegisterWorker(old)
            await plane.control().DeleteWorker(
                pb.DeleteWorkerRequest(worker=pb.ObjectRef(name="worker-0"))
            )
            if ended:
                await eventually(lambda: plane.atelet.count("Terminate") == 1)
            # On its own node the files are those of the present activation: hands off.
            assert plane.atelet.count("Terminate") == ended
        assert await plane.state("a") == "RUNNING"


@pytest.mark.conformance("C-05")
async def test_what_nobody_claims_is_terminated(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register()
        await plane.control().ResumeActor(resume("a"))
        plane.atelet.hosted["worker-1"].add("stray")
        await plane.register()
        await plane.register()
        await eventually(lambda: plane.atelet.count("Terminate") == 1)
        assert plane.atelet.last("Terminate").handle.actor_uid == "stray"
        assert await plane.state("a") == "RUNNING"


@pytest.mark.conformance("C-05")
async def test_a_resume_stuck_on_a_lost_worker_goes_elsewhere(tmp_path: Path) -> None:
    async with _running(tmp_path, worker_timeout=0.8) as plane:
        await plane.seed("a")
        await plane.register("worker-1")
        plane.atelet.always(
            "Run", lambda r: Codes.UNAVAILABLE if r.handle.worker == "worker-1" else None
        )
        await code_of(plane.control().ResumeActor(resume("a")))
        async with plane.heartbeats("worker-2"):
            await plane.until_registered("worker-2")
            answer = await _resumed(plane, "a", Codes.ABORTED, Codes.UNAVAILABLE)
            assert answer.actor.status.worker_assignment.worker.name == "worker-2"
            (old,) = {
                c.request.handle.worker for c in plane.atelet.calls if c.method == "Terminate"
            }
            assert old == "worker-1", "no second copy may come up there later"


@pytest.mark.conformance("C-05")
async def test_a_worker_that_comes_back_in_time_keeps_its_actors(tmp_path: Path) -> None:
    async with _running(tmp_path, worker_timeout=30) as plane:
        await plane.seed("a")
        await plane.register()
        running = (await plane.control().ResumeActor(resume("a"))).actor
        for _ in range(3):
            await plane.register()
        assert await plane.get("a") == running


@pytest.mark.conformance("C-05")
async def test_workers_are_not_lost_because_the_control_plane_was_away(tmp_path: Path) -> None:
    async with control_plane(tmp_path, worker_timeout=1.5) as plane:
        async with plane.in_process():
            await plane.seed("a")
            await plane.register()
            running = (await plane.control().ResumeActor(resume("a"))).actor
        await asyncio.sleep(1.6)  # away for longer than the worker's whole timeout
        async with plane.in_process(), plane.heartbeats("worker-1"):
            await asyncio.sleep(1.2)  # more than one round of the watch
            assert await plane.get("a") == running


# ---------------------------------------------------------------- C-06: identities


@pytest.mark.conformance("C-06")
async def test_certificates_rotate_under_a_running_control_plane(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register()
        control = plane.control()
        await control.ResumeActor(resume("a"))
        for component in ("ateapi", "atelet", "ate-cli"):
            for file in (plane.identity.root / "identity" / component).iterdir():
                file.unlink()
        plane.settings()
        plane.identity.credential("atelet", spiffe.ATELET_ID)
        plane.identity.credential("ate-cli", spiffe.CLI_ID)
        await asyncio.sleep(1.1)  # files are looked at once a second
        assert (await control.SuspendActor(suspend("a"))).actor.status.external_snapshot
        assert (await plane.control().ResumeActor(resume("a"))).resumed


# ---------------------------------------------------------------- C-07: made again


@pytest.mark.conformance("C-07")
async def test_a_name_made_again_is_another_incarnation(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed("a")
        await plane.register()
        control = plane.control()
        old = (await control.ResumeActor(resume("a"))).actor
        await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a"), any_state=True))
        await plane.seed("a")
        new = (await control.ResumeActor(resume("a"))).actor
        assert new.metadata.uid != old.metadata.uid
        assert plane.atelet.last("Run").handle.actor_uid == new.metadata.uid
        assert plane.atelet.count("Restore") == 0, "the old one's snapshot is not the new one's"
        stale = pb.DeleteActorRequest(
            actor=ref("a"), any_state=True, options=pb.DeleteOptions(uid=old.metadata.uid)
        )
        assert (await code_of(control.DeleteActor(stale)))[0] == "ABORTED"
        update = pb.UpdateActorRequest(actor=old)
        assert (await code_of(control.UpdateActor(update)))[0] == "ABORTED"


# ---------------------------------------------------------------- C-08: bad input


@pytest.mark.conformance("C-08")
async def test_bad_input_names_the_field_and_stores_nothing(tmp_path: Path) -> None:
    async with _running(tmp_path) as plane:
        await plane.seed()
        control = plane.control()
        bad_actor = actor("Bad")
        code, message = await code_of(control.CreateActor(pb.CreateActorRequest(actor=bad_actor)))
        assert (code, message.split(":")[0]) == ("INVALID_ARGUMENT", "actor.metadata.name")
        bad_template = pb.ActorTemplate(
            metadata=pb.ResourceMetadata(atespace="team-a", name="bad"),
            containers=[pb.Container(name="main")],
        )
        request = pb.CreateActorTemplateRequest(actor_template=bad_template)
        code, message = await code_of(control.CreateActorTemplate(request))
        assert code == "INVALID_ARGUMENT"
        assert message.startswith("actor_template.containers[0].command:")
        bad_worker = plane.registration("worker-1")
        bad_worker.worker.ips.append("nowhere")
        code, message = await code_of(plane.worker_service().RegisterWorker(bad_worker))
        assert (code, message.split(":")[0]) == ("INVALID_ARGUMENT", "worker.ips[1]")
        assert not (await control.ListActors(pb.ListActorsRequest())).actors
        templates = await control.ListActorTemplates(pb.ListActorTemplatesRequest())
        assert [t.metadata.name for t in templates.actor_templates] == ["tpl"]
        assert not (await control.ListWorkers(pb.ListWorkersRequest())).workers
