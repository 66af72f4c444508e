"""What is decided for a pool: told as states and the actions that follow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from atenet.controller.plan import Plan, candidates, of_interest, plan
from atenet.controller.views import Drain, PodView, PoolView, Reason, WorkerView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)


def pool(replicas: int, **given: object) -> PoolView:
    return PoolView(**{"replicas": replicas, "hash": "new", **given})  # type: ignore[arg-type]


def pod(name: str, **given: object) -> PodView:
    made = {"name": name, "uid": name, "hash": "new", "created": OLD, "ready": True}
    return PodView(**{**made, **given})  # type: ignore[arg-type]


def draining(
    name: str, reason: Reason = Reason.SCALE_DOWN, ago: float = 1.0, **given: object
) -> PodView:
    return pod(name, drain=Drain(reason, NOW - timedelta(seconds=ago)), **given)


def decide(view: PoolView, *pods: PodView, **workers: WorkerView | None) -> Plan:
    return plan(view, pods, {name.replace("_", "-"): w for name, w in workers.items()}, NOW)


def busy(actors: int, *, drained: bool = False) -> WorkerView:
    return WorkerView(actors=actors, draining=drained)


def gone(made: Plan) -> dict[str, str]:
    return {one.name: reason.value for one, reason in made.mark}


def test_what_is_missing_is_made() -> None:
    assert decide(pool(3)).create == 3
    assert decide(pool(3), pod("a"), pod("b")).create == 1
    assert decide(pool(1), pod("a")) == Plan()


def test_one_that_is_not_ready_yet_is_not_made_again() -> None:
    assert decide(pool(2), pod("a"), pod("b", ready=False)).create == 0


def test_one_on_its_way_out_does_not_count() -> None:
    assert decide(pool(2), pod("a"), pod("b", terminating=True)).create == 1


def test_whoever_has_the_fewest_actors_leaves_first() -> None:
    pods = (pod("a"), pod("b"), pod("c"))
    made = decide(pool(1), *pods, a=busy(3), b=busy(1), c=busy(2))
    assert gone(made) == {"b": "scale-down", "c": "scale-down"}
    assert set(candidates(pool(1), pods)) == {"a", "b", "c"}


def test_whoever_is_not_ready_leaves_before_all_others_then_the_outdated_then_the_youngest() -> (
    None
):
    pods = (
        pod("empty", created=NOW),
        pod("unready", ready=False),
        pod("outdated", hash="old"),
        pod("last"),
    )
    # The outdated one may stay above replicas as long as it is to be replaced: one place of surge.
    order = []
    for replicas in (2, 1, 0):
        view = pool(replicas, max_surge=0, max_unavailable=1)
        order.append(sorted(gone(decide(view, *pods))))
    assert order == [
        ["outdated", "unready"],
        ["empty", "outdated", "unready"],
        ["empty", "last", "outdated", "unready"],
    ]


def test_a_pod_goes_once_its_worker_drains_and_is_empty() -> None:
    view = pool(0)
    assert decide(view, draining("a"), a=busy(0)).drain == ("a",)
    assert decide(view, draining("a"), a=busy(0)).delete == ()
    made = decide(view, draining("a"), a=busy(2, drained=True))
    assert (made.drain, made.delete, made.again_in) == ((), (), 2.0)
    assert [p.name for p in decide(view, draining("a"), a=busy(0, drained=True)).delete] == ["a"]


def test_a_worker_that_never_registered_keeps_no_pod() -> None:
    assert [p.name for p in decide(pool(0), draining("a"), a=None).delete] == ["a"]


def test_without_an_answer_of_the_control_plane_nothing_is_deleted_before_the_deadline() -> None:
    view = pool(0, deadline_seconds=60)
    made = decide(view, draining("a", ago=59.5))
    assert (made.delete, made.again_in) == ((), 0.5)
    assert [p.name for p in decide(view, draining("a", ago=60)).delete] == ["a"]


def test_a_draining_one_that_is_wanted_again_is_kept_rather_than_another_made() -> None:
    made = decide(pool(2), pod("a"), draining("b"), b=busy(1, drained=True))
    assert [p.name for p in made.undrain] == ["b"]
    assert (made.create, made.delete, made.drain) == (0, (), ())


def test_one_that_drains_for_another_reason_is_not_kept() -> None:
    for reason in (Reason.ROLLOUT, Reason.ASKED):
        made = decide(pool(1), draining("a", reason), a=busy(1, drained=True))
        assert made.undrain == ()
    outdated = draining("a", hash="old")
    assert decide(pool(1), outdated, a=busy(1, drained=True)).undrain == ()


def test_one_that_somebody_asked_to_leave_is_replaced_at_once() -> None:
    made = decide(pool(2), pod("a"), draining("b", Reason.ASKED), b=busy(1, drained=True))
    assert made.create == 1


def test_a_rollout_makes_a_new_one_before_an_old_one_goes() -> None:
    old = [pod(name, hash="old") for name in "abc"]
    first = decide(pool(3), *old)
    assert (first.create, gone(first)) == (1, {})
    waiting = decide(pool(3), *old, pod("n", ready=False))
    assert (waiting.create, gone(waiting)) == (0, {})
    there = decide(pool(3), *old, pod("n"), a=busy(2), b=busy(0), c=busy(1))
    assert (there.create, gone(there)) == (0, {"b": "rollout"})
    rest = [one for one in old if one.name != "b"]
    leaving = draining("b", Reason.ROLLOUT, hash="old")
    between = decide(pool(3), *rest, pod("n"), leaving, b=busy(1, drained=True))
    assert (between.create, gone(between)) == (0, {})


def test_without_surge_an_old_one_goes_first_and_holds_its_place_until_it_is_gone() -> None:
    view = pool(2, max_surge=0, max_unavailable=1)
    old = [pod("a", hash="old"), pod("b", hash="old")]
    assert gone(decide(view, *old)) == {"b": "rollout"} or gone(decide(view, *old)) == {
        "a": "rollout"
    }
    leaving = draining("b", Reason.ROLLOUT, hash="old")
    assert decide(view, old[0], leaving, b=busy(1, drained=True)).create == 0
    assert decide(view, old[0], pod("b", hash="old", terminating=True)).create == 1


def test_a_broken_template_stops_a_rollout_and_the_next_one_replaces_it() -> None:
    old = [pod(name, hash="old") for name in "ab"]
    stuck = decide(pool(2), *old, pod("n", hash="new", ready=False))
    assert (stuck.create, gone(stuck)) == (0, {})
    again = decide(pool(2, hash="newer"), *old, pod("n", hash="new", ready=False))
    assert gone(again) == {"n": "rollout"}


def test_a_lost_one_is_replaced_while_a_rollout_waits_for_a_drain() -> None:
    leaving = draining("b", Reason.ROLLOUT, hash="old")
    made = decide(pool(3), pod("a"), pod("c", terminating=True), leaving, b=busy(1, drained=True))
    assert made.create == 1


def test_a_pod_that_ended_for_good_is_replaced_but_not_in_a_hurry() -> None:
    made = decide(pool(1), pod("a", over=True))
    assert ([p.name for p in made.delete], made.create) == (["a"], 1)
    young = decide(pool(1), pod("a", over=True, created=NOW - timedelta(seconds=1)))
    assert (young.delete, young.create, young.again_in) == ((), 0, 10.0)


def test_a_pod_that_is_being_deleted_takes_no_actors_meanwhile() -> None:
    pods = (pod("a", terminating=True), pod("b"))
    assert of_interest(pods) == ["a"]
    assert decide(pool(1), *pods, a=busy(2)).drain == ("a",)
    assert decide(pool(1), *pods, a=busy(2, drained=True)).drain == ()


def test_a_deleted_pool_is_finished_when_no_pod_is_left_that_takes_actors() -> None:
    view = pool(0, deleting=True)
    assert gone(decide(view, pod("a"))) == {"a": "pool-deleted"}
    leaving = draining("a", Reason.POOL_DELETED)
    assert not decide(view, leaving, a=busy(1, drained=True)).finished
    assert decide(view, pod("a", terminating=True)).finished
    assert decide(view).finished
    assert not decide(pool(0)).finished


def test_nothing_has_to_be_asked_where_nothing_is_to_be_decided() -> None:
    pods = [pod(str(n)) for n in range(50)]
    assert of_interest(pods) == []
    assert candidates(pool(50), pods) == []
