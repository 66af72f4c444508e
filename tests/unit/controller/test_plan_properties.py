"""Whatever happens to a pool: never too many pods, never too few workers by our own doing, no actor
thrown out before its time, and in the end what was wanted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from atenet.controller.plan import Plan, plan
from atenet.controller.views import Drain, PodView, PoolView, Reason, WorkerView
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

_DEADLINE = 100.0


@dataclass
class _Worker:
    actors: int = 0
    draining: bool = False


@dataclass
class _World:
    """A cluster and a control plane that do what they are told, one look after another."""

    pool: PoolView
    pods: dict[str, PodView] = field(default_factory=dict)
    workers: dict[str, _Worker] = field(default_factory=dict)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    made: int = 0

    def look(self, *, answers: bool = True) -> Plan:
        known: dict[str, WorkerView | None] = {}
        if answers:
            known = {
                name: WorkerView(w.actors, w.draining) if (w := self.workers.get(name)) else None
                for name in self.pods
            }
        decided = plan(self.pool, self.pods.values(), known, self.now)
        self._do(decided)
        return decided

    def _do(self, decided: Plan) -> None:
        for pod in decided.undrain:
            if worker := self.workers.get(pod.name):
                worker.draining = False
            self.pods[pod.name] = replace(self.pods[pod.name], drain=None)
        for pod, reason in decided.mark:
            self.pods[pod.name] = replace(self.pods[pod.name], drain=Drain(reason, self.now))
        for name in decided.drain:
            self.workers[name].draining = True
        for pod in decided.delete:
            self._check_delete(self.pods[pod.name])
            self.pods[pod.name] = replace(self.pods[pod.name], terminating=True)
        for _ in range(decided.create):
            self.made += 1
            name = f"p{self.made}"
            self.pods[name] = PodView(name, name, self.pool.hash, self.now)

    def _check_delete(self, pod: PodView) -> None:
        """No actor is thrown out before its time, nor a worker that could still be given one."""
        worker = self.workers.get(pod.name)
        if pod.over or worker is None:
            return
        assert pod.drain is not None
        overdue = self.now - pod.drain.since >= timedelta(seconds=_DEADLINE)
        assert overdue or (worker.actors == 0 and worker.draining)

    @property
    def alive(self) -> list[PodView]:
        return [p for p in self.pods.values() if not p.terminating and not p.over]

    @property
    def counted(self) -> list[PodView]:
        return [p for p in self.alive if p.drain is None]

    def end(self, name: str) -> None:
        del self.pods[name]
        self.workers.pop(name, None)

    def become_ready(self, name: str) -> None:
        self.pods[name] = replace(self.pods[name], ready=True)
        self.workers.setdefault(name, _Worker())


class PoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        view = PoolView(3, "h0", max_surge=1, max_unavailable=0, deadline_seconds=_DEADLINE)
        self.world = _World(view)

    def _some(self, pods: list[PodView], pick: int) -> str | None:
        names = sorted(pod.name for pod in pods)
        return names[pick % len(names)] if names else None

    @rule(replicas=st.integers(0, 6))
    def scale(self, replicas: int) -> None:
        self.world.pool = replace(self.world.pool, replicas=replicas)

    @rule(number=st.integers(0, 2))
    def change_template(self, number: int) -> None:
        self.world.pool = replace(self.world.pool, hash=f"h{number}")

    @rule(surge=st.integers(0, 3), unavailable=st.integers(0, 2))
    def change_strategy(self, surge: int, unavailable: int) -> None:
        if surge + unavailable:
            self.world.pool = replace(self.world.pool, max_surge=surge, max_unavailable=unavailable)

    @rule(pick=st.integers(0, 20))
    def one_becomes_ready(self, pick: int) -> None:
        if name := self._some([p for p in self.world.alive if not p.ready], pick):
            self.world.become_ready(name)

    @rule(pick=st.integers(0, 20), actors=st.integers(1, 3))
    def actors_come(self, pick: int, actors: int) -> None:
        name = self._some([p for p in self.world.alive if p.name in self.world.workers], pick)
        if name and not self.world.workers[name].draining:
            self.world.workers[name].actors += actors

    @rule(pick=st.integers(0, 20))
    def actors_leave(self, pick: int) -> None:
        if name := self._some([p for p in self.world.alive if p.name in self.world.workers], pick):
            self.world.workers[name].actors = 0

    @rule(pick=st.integers(0, 20))
    def a_pod_is_deleted_by_somebody(self, pick: int) -> None:
        if name := self._some(self.world.alive, pick):
            self.world.pods[name] = replace(self.world.pods[name], terminating=True)

    @rule(pick=st.integers(0, 20))
    def a_node_is_lost_with_its_pod(self, pick: int) -> None:
        if name := self._some(self.world.alive, pick):
            self.world.end(name)

    @rule(pick=st.integers(0, 20))
    def a_pod_fails(self, pick: int) -> None:
        if name := self._some(self.world.alive, pick):
            self.world.pods[name] = replace(self.world.pods[name], over=True, ready=False)

    @rule(pick=st.integers(0, 20))
    def a_deleted_pod_is_gone(self, pick: int) -> None:
        if name := self._some([p for p in self.world.pods.values() if p.terminating], pick):
            self.world.end(name)

    @rule(pick=st.integers(0, 20))
    def somebody_asks_one_to_leave(self, pick: int) -> None:
        if name := self._some(self.world.counted, pick):
            drain = Drain(Reason.ASKED, self.world.now)
            self.world.pods[name] = replace(self.world.pods[name], drain=drain)

    @rule(seconds=st.integers(1, 60), answers=st.booleans())
    def look(self, seconds: int, answers: bool) -> None:
        world = self.world
        world.now += timedelta(seconds=seconds)
        ready = sum(p.ready for p in world.counted)
        decided = world.look(answers=answers)
        # By its own doing it never has fewer than it may, nor leaves more than it may.
        least = min(ready, world.pool.replicas - world.pool.max_unavailable)
        if decided.mark:
            assert sum(p.ready for p in world.counted) >= least
        if decided.create:
            most = world.pool.replicas + world.pool.max_surge
            replaced = [p for p in world.alive if p.drain and p.drain.reason is Reason.ROLLOUT]
            assert len(world.counted) + len(replaced) <= most

    @invariant()
    def a_second_look_at_once_makes_no_more_pods(self) -> None:
        """Never two pods for one place: only one that is deleted leaves its own to another."""
        if not self.world.look().delete:
            assert self.world.look().create == 0

    def teardown(self) -> None:
        """Left alone, it comes to rest as wanted."""
        world = self.world
        for _ in range(200):
            quiet = world.look() == Plan()
            world.now += timedelta(seconds=15)
            for pod in list(world.pods.values()):
                if pod.terminating:
                    world.end(pod.name)
                    quiet = False
                elif not pod.ready and not pod.over:
                    world.become_ready(pod.name)
                    quiet = False
            if quiet:
                break
        else:
            raise AssertionError("it does not come to rest")
        assert len(world.pods) == world.pool.replicas
        assert all(pod.hash == world.pool.hash and pod.ready for pod in world.pods.values())


TestPools = PoolMachine.TestCase
TestPools.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
