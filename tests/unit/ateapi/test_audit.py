"""The audit log: who did what, for each change, in the same transaction; and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from atenet.ateapi import audit
from atenet.ateapi.store import AuditEntry, Store, Transaction
from atenet.ateapi.store.location import store_location
from atenet.ateapi.store.opening import open_store
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import (
    ControlPlane,
    actor,
    code_of,
    control_plane,
    ref,
    resume,
    suspend,
    template,
)
from tests.support.egress_policies import header, headers, https, policy

_TRACE = "0af7651916cd43dd8448eb211c80319c"
_CALLER = [("traceparent", f"00-{_TRACE}-b7ad6b7169203331-01")]


@pytest.fixture
def plane(plane_on_either_store: ControlPlane) -> ControlPlane:
    return plane_on_either_store


async def _log(plane: ControlPlane) -> list[AuditEntry]:
    store = await open_store(store_location(plane.settings().store))
    try:
        return [row.entry for row in await store.read(lambda tx: tx.audit.page(0, 100))]
    finally:
        await store.close()


async def test_each_change_leaves_who_did_what_to_whom(plane: ControlPlane) -> None:
    await plane.seed()
    await plane.register()
    began = time.time()
    control = plane.control()
    made = await control.CreateActor(pb.CreateActorRequest(actor=actor("a")), metadata=_CALLER)
    await plane.control(spiffe.ROUTER_ID).ResumeActor(resume("a"))
    await control.SuspendActor(suspend("a"))
    given = policy(https("a.example", effects=headers(header(prefix="s3cret"))))
    request = pb.CreateActorEgressPolicyRequest(actor=ref("a"), egress_policy=given)
    stored = await control.CreateActorEgressPolicy(request)
    await control.DeleteActor(pb.DeleteActorRequest(actor=ref("a")))

    before, *entries = (await _log(plane))[2:]
    assert (before.method, before.target) == ("WorkerService/RegisterWorker", "worker/worker-1")
    assert before.subject == spiffe.ATELET_ID
    assert [(e.subject, e.method, e.uid) for e in entries] == [
        (spiffe.CLI_ID, "Control/CreateActor", made.metadata.uid),
        (spiffe.ROUTER_ID, "Control/ResumeActor", made.metadata.uid),
        (spiffe.CLI_ID, "Control/SuspendActor", made.metadata.uid),
        (spiffe.CLI_ID, "Control/CreateActorEgressPolicy", stored.metadata.uid),
        (spiffe.CLI_ID, "Control/DeleteActor", made.metadata.uid),
    ]
    assert {e.target for e in entries} == {"actor/team-a/a"}
    assert [e.trace_id for e in entries] == [_TRACE, "", "", "", ""]
    assert all(began - 1 < e.at < time.time() + 1 for e in entries)
    assert "s3cret" not in str(entries)


async def test_what_changes_nothing_leaves_nothing(plane: ControlPlane) -> None:
    await plane.seed("a")
    await plane.register()
    control = plane.control()
    await control.ResumeActor(resume("a"))
    before = await _log(plane)
    await control.ResumeActor(resume("a"))
    await control.GetActor(pb.GetActorRequest(actor=ref("a")))
    await control.ListActors(pb.ListActorsRequest())
    await plane.register()  # a heartbeat
    for call in (
        control.CreateActor(pb.CreateActorRequest(actor=actor("a"))),
        control.CreateActor(pb.CreateActorRequest(actor=actor("B"))),
        control.ResumeActor(resume("nobody")),
        plane.control(spiffe.EGRESS_ID).SuspendActor(suspend("a")),
    ):
        await code_of(call)
    assert await _log(plane) == before
    await plane.register(epoch=2)  # a new incarnation
    news = (await _log(plane))[len(before)]
    assert (news.method, news.target) == ("WorkerService/RegisterWorker", "worker/worker-1")


async def test_a_workflow_that_fails_after_its_first_step_is_in_the_log(
    plane: ControlPlane,
) -> None:
    await plane.seed("a")
    await plane.register()
    plane.atelet.script("Run", grpc.StatusCode.INTERNAL)
    assert (await code_of(plane.control().ResumeActor(resume("a"))))[0] == "INTERNAL"
    assert [e.method for e in await _log(plane)][-1] == "Control/ResumeActor"


async def test_what_the_control_plane_does_by_itself_is_in_its_own_name(tmp_path: Path) -> None:
    async with control_plane(tmp_path, worker_timeout=0.3) as plane, plane.in_process():
        await plane.seed("a")
        await plane.register()
        running = (await plane.control().ResumeActor(resume("a"))).actor
        await plane.until("a", "SUSPENDED")  # its worker is silent
        entry = (await _log(plane))[-1]
        assert (entry.subject, entry.method) == (spiffe.API_ID, "ateapi/begin_suspend")
        assert (entry.target, entry.uid) == ("actor/team-a/a", running.metadata.uid)


async def test_who_had_to_make_room_is_in_the_log_with_who_took_it(plane: ControlPlane) -> None:
    control = plane.control()
    await plane.seed()
    patient = template(name="patient")
    patient.reclaim_after.FromTimedelta(timedelta(seconds=1))
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=patient))
    idle = actor("idle")
    idle.actor_template.name = "patient"
    await control.CreateActor(pb.CreateActorRequest(actor=idle))
    await control.CreateActor(pb.CreateActorRequest(actor=actor("a")))
    await plane.register(slots=1)
    await control.ResumeActor(resume("idle"))
    await plane.register(slots=1, idle_ms=60_000)
    await plane.control(spiffe.ROUTER_ID).ResumeActor(resume("a"))
    told = [(e.subject, e.method, e.target) for e in (await _log(plane))[-2:]]
    assert told == [
        (spiffe.ROUTER_ID, "Control/ResumeActor: begin_suspend", "actor/team-a/idle"),
        (spiffe.ROUTER_ID, "Control/ResumeActor", "actor/team-a/a"),
    ]


async def test_no_credential_is_given_out_that_is_not_in_the_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with (
        control_plane(tmp_path / "minting") as minting,
        minting.in_process(issuer="https://issuer.example"),
    ):
        (made,) = await minting.seed("a")
        gateway = minting.control(spiffe.EGRESS_ID)
        request = pb.MintActorJWTRequest(
            actor=ref("a"), audience=["x"], expiration_seconds=300, actor_uid=""
        )
        token = (await gateway.MintActorJWT(request)).actor_jwt
        entry = (await _log(minting))[-1]
        assert (entry.subject, entry.method) == (spiffe.EGRESS_ID, "Control/MintActorJWT")
        assert (entry.target, entry.uid) == ("actor/team-a/a", made.metadata.uid)
        assert token not in str(entry)

        def full(*_: Any) -> None:
            raise RuntimeError("no room")

        monkeypatch.setattr("atenet.ateapi.store.rows.ledger.Audit.append", full)
        assert (await code_of(gateway.MintActorJWT(request)))[0] == "INTERNAL"


async def test_a_change_and_its_entry_stand_or_fall_together(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plane.seed()

    def full(*_: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr("atenet.ateapi.store.rows.ledger.Audit.append", full)
    call = plane.control().CreateActor(pb.CreateActorRequest(actor=actor("a")))
    assert (await code_of(call))[0] == "INTERNAL"
    assert (await code_of(plane.get("a")))[0] == "NOT_FOUND"


def test_every_method_that_may_change_something_is_in_the_log() -> None:
    every = {
        f"{s.name}/{m.name}"
        for s in pb.DESCRIPTOR.services_by_name.values()
        for m in s.methods
        if not m.name.startswith(("Get", "List", "Watch"))
    }
    assert every - audit.AUDITED == {"WorkerService/RegisterWorker"}
    assert {m for m in every if "Mint" in m} == audit.MINTS


@pytest.mark.parametrize(
    ("request_", "target"),
    [
        (pb.GetActorRequest(actor=ref("a")), "actor/team-a/a"),
        (pb.CreateActorRequest(actor=actor("a")), "actor/team-a/a"),
        (pb.DrainWorkerRequest(worker=pb.ObjectRef(name="w")), "worker/w"),
        (pb.DeleteAtespaceRequest(name="team-a"), "atespace/team-a"),
        (pb.CreateActorRequest(), "actor"),
        (pb.ResumeActorRequest(actor=ref("a" * 5000)), f"actor/team-a/{'a' * 243}"),
    ],
)
def test_a_target_has_one_spelling(request_: Any, target: str) -> None:
    assert audit.target_of(request_) == target


async def test_old_entries_are_forgotten_in_time(tmp_path: Path) -> None:
    store: Store = await open_store(tmp_path / "ate.db")
    now = time.time()

    def fill(tx: Transaction) -> None:
        for days in (9, 8, 6):
            tx.audit.append(AuditEntry(now - days * 86400, "s", "m", "t", "", ""))

    await store.write(fill)
    await audit.Keeper(store, 7 * 86400, lambda: now).round()
    left = await store.read(lambda tx: tx.audit.page(0, 10))
    assert [round((now - row.entry.at) / 86400) for row in left] == [6]
    await store.close()


async def test_the_command_prints_the_log(plane: ControlPlane) -> None:
    await plane.seed("a", "b")
    lines = (await _run(plane, "--json")).splitlines()
    printed = [json.loads(line) for line in lines]
    assert [p["method"].partition("/")[2] for p in printed] == [
        *("CreateAtespace", "CreateActorTemplate", "CreateActor", "CreateActor")
    ]
    only = await _run(plane, "--target", "actor/team-a/b")
    (line,) = only.splitlines()
    assert line.split()[2:5] == [spiffe.CLI_ID, "Control/CreateActor", "actor/team-a/b"]
    assert await _run(plane, "--after", str(printed[-1]["number"])) == ""


async def _run(plane: ControlPlane, *words: str) -> str:
    program = "from atenet.ateapi.main import main; main(prog_name='ateapi')"
    store = str(plane.settings().store)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, "audit", "--store", store, "--log-level", "error"),
        *words,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()
