"""The pure decisions of the workflows."""

from __future__ import annotations

from dataclasses import replace

import grpc
import pytest
from atenet.ateapi.hosting import HostingLedger
from atenet.ateapi.scheduler import choose, fits_instead, matches
from atenet.ateapi.service.wire import resume_response
from atenet.ateapi.store import WorkerRow
from atenet.ateapi.store.interface import ClaimRow
from atenet.ateapi.workflows import decide
from atenet.ateapi.workflows.decide import (
    DeleteStep,
    PauseStep,
    ResumeStep,
    RevertStep,
    SuspendStep,
    Verdict,
)
from atenet.proto import ateapi_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st


def _state(word: str) -> pb.ActorState:
    return pb.ActorState.Value(f"ACTOR_STATE_{word}")


@pytest.mark.parametrize(
    ("word", "good", "step"),
    [
        ("SUSPENDED", False, ResumeStep.CLAIM),
        ("PAUSED", True, ResumeStep.THAW),
        ("PAUSED", False, ResumeStep.STORE),
        ("RESUMING", True, ResumeStep.START),
        ("RESUMING", False, ResumeStep.RECLAIM),
        ("RUNNING", True, ResumeStep.DONE),
        ("CRASHED", False, ResumeStep.REFUSE),
        ("SUSPENDING", True, ResumeStep.REFUSE),
        ("PAUSING", True, ResumeStep.REFUSE),
        ("DELETING", True, ResumeStep.REFUSE),
        ("REVERTING", True, ResumeStep.REFUSE),
        ("UNSPECIFIED", True, ResumeStep.REFUSE),
    ],
)
def test_resume(word: str, good: bool, step: ResumeStep) -> None:
    assert decide.resume_step(_state(word), claim_good=good) is step


def test_a_frozen_actor_on_its_way_back_is_thawed_or_stored() -> None:
    resuming = _state("RESUMING")
    assert decide.resume_step(resuming, claim_good=True, frozen=True) is ResumeStep.THAW
    assert decide.resume_step(resuming, claim_good=False, frozen=True) is ResumeStep.STORE
    assert decide.suspend_step(resuming, frozen=True) is SuspendStep.BEGIN


@pytest.mark.parametrize(
    ("word", "good", "step"),
    [
        ("RUNNING", True, PauseStep.BEGIN),
        ("PAUSING", True, PauseStep.FREEZE),
        ("PAUSING", False, PauseStep.STORE),
        ("PAUSED", True, PauseStep.DONE),
        ("SUSPENDED", False, PauseStep.REFUSE),
        ("RESUMING", True, PauseStep.REFUSE),
        ("CRASHED", False, PauseStep.REFUSE),
    ],
)
def test_pause(word: str, good: bool, step: PauseStep) -> None:
    assert decide.pause_step(_state(word), claim_good=good) is step


@pytest.mark.parametrize(
    ("word", "step"),
    [
        ("SUSPENDED", RevertStep.DONE),
        ("RUNNING", RevertStep.BEGIN),
        ("PAUSED", RevertStep.BEGIN),
        ("CRASHED", RevertStep.BEGIN),
        ("REVERTING", RevertStep.TERMINATE),
        ("RESUMING", RevertStep.REFUSE),
        ("SUSPENDING", RevertStep.REFUSE),
        ("DELETING", RevertStep.REFUSE),
    ],
)
def test_revert(word: str, step: RevertStep) -> None:
    assert decide.revert_step(_state(word)) is step


@pytest.mark.parametrize(
    ("code", "good", "verdict"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, True, Verdict.CANNOT),
        (grpc.StatusCode.UNAVAILABLE, True, Verdict.RETRY),
        (grpc.StatusCode.UNAVAILABLE, False, Verdict.MOVED),
        (grpc.StatusCode.NOT_FOUND, True, Verdict.MOVED),
        (grpc.StatusCode.INTERNAL, True, Verdict.FATAL),
    ],
)
def test_a_refused_pause(code: grpc.StatusCode, good: bool, verdict: Verdict) -> None:
    assert decide.pause_verdict(code, claim_good=good) is verdict


@pytest.mark.parametrize(
    ("word", "step"),
    [
        ("SUSPENDED", SuspendStep.DONE),
        ("RUNNING", SuspendStep.BEGIN),
        ("PAUSED", SuspendStep.BEGIN),
        ("PAUSING", SuspendStep.BEGIN),
        ("SUSPENDING", SuspendStep.CHECKPOINT),
        ("RESUMING", SuspendStep.REFUSE),
        ("CRASHED", SuspendStep.REFUSE),
        ("DELETING", SuspendStep.REFUSE),
    ],
)
def test_suspend(word: str, step: SuspendStep) -> None:
    assert decide.suspend_step(_state(word)) is step


def test_delete() -> None:
    step = decide.delete_step
    assert step(_state("RUNNING"), any_state=False, assigned=True) is DeleteStep.REFUSE
    assert step(_state("RUNNING"), any_state=True, assigned=True) is DeleteStep.BEGIN
    for word in ("SUSPENDED", "CRASHED"):
        assert step(_state(word), any_state=False, assigned=False) is DeleteStep.BEGIN
    assert step(_state("DELETING"), any_state=False, assigned=True) is DeleteStep.TERMINATE
    assert step(_state("DELETING"), any_state=False, assigned=False) is DeleteStep.REMOVE


@given(st.sampled_from(list(grpc.StatusCode)))
def test_a_refusal_by_a_worker_that_is_gone_never_crashes_an_actor(code: grpc.StatusCode) -> None:
    assert decide.start_verdict(code, claim_good=False) is Verdict.MOVED


@pytest.mark.parametrize("claim_good", [True, False])
@pytest.mark.parametrize(
    ("code", "given_up", "verdict"),
    [
        (grpc.StatusCode.UNAVAILABLE, False, Verdict.RETRY),
        (grpc.StatusCode.DEADLINE_EXCEEDED, False, Verdict.RETRY),
        (grpc.StatusCode.UNAVAILABLE, True, Verdict.FATAL),
        (grpc.StatusCode.DATA_LOSS, False, Verdict.FATAL),
    ],
)
def test_files_on_a_node_that_is_away_are_waited_for(
    claim_good: bool, code: grpc.StatusCode, given_up: bool, verdict: Verdict
) -> None:
    found = decide.checkpoint_verdict(code, claim_good=claim_good, node_given_up=given_up)
    assert found is verdict


def test_a_wrong_certificate_crashes_nobody() -> None:
    for code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED):
        assert decide.start_verdict(code, claim_good=True) is Verdict.RETRY


def _row(name: str, slots: int, allocated: int, **labels: str) -> WorkerRow:
    worker = pb.Worker(
        metadata=pb.ResourceMetadata(name=name), sandbox_class="process", labels=labels
    )
    worker.status.capacity.actors = slots
    return WorkerRow(worker, allocated, 0.0, lost=False)


_TEMPLATE = pb.ActorTemplate(sandbox_config=pb.SandboxConfig(sandbox_class="process"))


def test_the_first_that_fits_is_chosen_and_no_more_are_looked_at() -> None:
    rows = iter([_row("a", 4, 2), _row("b", 100, 10)])
    chosen = choose(rows, pb.Actor(), _TEMPLATE)
    assert chosen is not None
    assert chosen.worker.metadata.name == "a"
    assert len(list(rows)) == 1


def test_a_worker_without_the_resources_is_passed_over() -> None:
    rows = [_row("a", 4, 1), _row("b", 4, 1), _row("c", 4, 1)]
    rows[0].worker.status.capacity.resources["cpu_milli"] = 1000
    rows[1].worker.status.capacity.resources.update({"cpu_milli": 1000, "memory_bytes": 100})
    rows = [replace(rows[0], allocated_cpu=501), replace(rows[1], allocated_memory=51), rows[2]]
    template = pb.ActorTemplate(sandbox_config=_TEMPLATE.sandbox_config)
    for cpu, memory, name in ((499, 49, "a"), (500, 49, "b"), (500, 50, "c")):
        template.resources.cpu_milli, template.resources.memory_bytes = cpu, memory
        chosen = choose(rows, pb.Actor(), template)
        assert chosen is not None
        assert chosen.worker.metadata.name == name, "a worker that names no capacity is not counted"
    assert choose(rows[:2], pb.Actor(), template) is None


def test_a_slot_fits_if_what_its_holder_gives_up_is_enough() -> None:
    row = replace(_row("a", 1, 1), allocated_cpu=1000)
    row.worker.status.capacity.resources["cpu_milli"] = 1000
    template = pb.ActorTemplate(sandbox_config=_TEMPLATE.sandbox_config)
    template.resources.cpu_milli = 400
    for given_up, fits in ((399, False), (400, True)):
        claim = ClaimRow("u", "a", 1, cpu_milli=given_up)
        assert fits_instead(row, claim, pb.Actor(), template) is fits


def test_both_selectors_must_match() -> None:
    rows = [_row("a", 1, 0, zone="x"), _row("b", 1, 0, zone="x", disk="fast")]
    actor = pb.Actor(worker_selector=pb.Selector(match_labels={"disk": "fast"}))
    template = pb.ActorTemplate(
        worker_selector=pb.Selector(match_labels={"zone": "x"}),
        sandbox_config=_TEMPLATE.sandbox_config,
    )
    chosen = choose(rows, actor, template)
    assert chosen is not None
    assert chosen.worker.metadata.name == "b"
    assert choose(rows[:1], actor, template) is None


def test_another_sandbox_class_does_not_fit() -> None:
    template = pb.ActorTemplate(sandbox_config=pb.SandboxConfig(sandbox_class="gvisor"))
    assert choose([_row("a", 1, 0)], pb.Actor(), template) is None


def test_a_label_must_have_exactly_that_value() -> None:
    selector = pb.Selector(match_labels={"a": ""})
    assert matches(selector, {"a": ""})
    assert not matches(selector, {})
    assert not matches(selector, {"a": "b"})


def test_a_difference_counts_when_it_is_seen_twice_in_a_row() -> None:
    ledger = HostingLedger()

    def see(hosted: set[str]) -> tuple[set[str], set[str]]:
        found = ledger.observe("w", hosted=hosted, running={"u1"}, claimed={"u1", "u2"})
        return set(found.missing), set(found.strays)

    assert see({"u1", "u2", "u3"}) == (set(), set())
    assert see({"u2", "u3"}) == (set(), {"u3"})
    assert see({"u2"}) == ({"u1"}, set())
    assert see({"u1"}) == (set(), set())
    assert see({"u2"}) == (set(), set())
    ledger.forget("w")
    assert see({"u2"}) == (set(), set())


@given(st.binary(max_size=400), st.integers(min_value=0, max_value=3))
def test_the_warm_response_is_the_message_it_stands_for(name: bytes, size: int) -> None:
    actor = pb.Actor(metadata=pb.ResourceMetadata(name=name.hex() * 10**size))
    wanted = pb.ResumeActorResponse(actor=actor, resumed=False).SerializeToString()
    assert resume_response(actor.SerializeToString()) == wanted
