import socket
from pathlib import Path

import pytest
from atenet.atelet.workers import StaleWorkerError, Workers


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workers(tmp_path: Path, clock: Clock) -> Workers:
    return Workers(tmp_path / "workers.json", silent_after=6, clock=clock)


async def test_only_the_present_incarnation_is_current(workers: Workers) -> None:
    assert await workers.registered("w", 1, "/s", set())
    assert workers.current("w", 1).socket_path == "/s"
    assert await workers.registered("w", 2, "/s", set())
    with pytest.raises(StaleWorkerError, match="is at epoch 2, the call names epoch 1"):
        workers.current("w", 1)
    with pytest.raises(StaleWorkerError, match="'x' is unknown here"):
        workers.current("x", 1)
    assert workers.find("w", 1) is None


async def test_a_registration_that_was_on_its_way_does_not_undo_a_start(workers: Workers) -> None:
    await workers.registered("w", 1, "/s", set())
    worker = workers.current("w", 1)
    worker.starting.add("uid")
    await workers.registered("w", 1, "/s", set())
    assert workers.hosting("uid") is worker
    worker.starting.discard("uid")
    assert workers.hosting("uid") is None


async def test_a_late_word_of_an_earlier_incarnation_is_not_taken(workers: Workers) -> None:
    await workers.registered("w", 2, "/s", {"uid"})
    assert not await workers.registered("w", 1, "/s", set())
    assert workers.hosting("uid") is workers.current("w", 2)


async def test_a_new_incarnation_hosts_nothing_of_the_old(workers: Workers) -> None:
    await workers.registered("w", 1, "/s", {"uid"})
    await workers.registered("w", 2, "/s", set())
    assert workers.hosting("uid") is None


async def test_the_table_survives_a_restart(workers: Workers, tmp_path: Path) -> None:
    await workers.registered("w", 7, "/run/w.sock", {"uid"})
    again = Workers(tmp_path / "workers.json", silent_after=6)
    assert again.current("w", 7).socket_path == "/run/w.sock"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"w": 1}', '{"w": {"epoch": "x"}}', "null"])
def test_a_damaged_table_is_an_empty_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "workers.json").write_text(content)
    assert Workers(tmp_path / "workers.json", silent_after=6).find("w", 1) is None


async def test_silence_is_counted_from_the_last_word(workers: Workers, clock: Clock) -> None:
    await workers.registered("w", 1, "/s", set())
    clock.now += 5
    assert not workers.is_silent(workers.current("w", 1))
    clock.now += 2
    assert workers.is_silent(workers.current("w", 1))
    await workers.registered("w", 1, "/s", set())
    assert not workers.is_silent(workers.current("w", 1))


async def test_after_a_restart_everybody_has_time_to_speak_up(
    workers: Workers, clock: Clock, tmp_path: Path
) -> None:
    await workers.registered("w", 1, "/s", set())
    clock.now += 1000
    again = Workers(tmp_path / "workers.json", silent_after=6, clock=clock)
    assert not again.is_silent(again.current("w", 1))
    clock.now += 7
    assert again.is_silent(again.current("w", 1))


async def test_a_socket_without_a_process_accepts_nothing(workers: Workers, tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    await workers.registered("w", 1, str(path), set())
    worker = workers.current("w", 1)
    assert not worker.accepts()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not worker.accepts()
        server.listen()
        assert worker.accepts()
    assert not worker.accepts()


async def test_after_a_start_known_workers_are_waited_for_and_not_for_ever(
    workers: Workers, tmp_path: Path, clock: Clock
) -> None:
    assert not workers.still_waiting
    for name in ("w", "gone"):
        await workers.registered(name, 1, "/s", {"uid"})
    again = Workers(tmp_path / "workers.json", silent_after=6, clock=clock)
    assert again.still_waiting
    await again.registered("w", 1, "/s", {"uid"})
    assert again.still_waiting
    clock.now += 6.1
    assert not again.still_waiting


async def test_a_worker_lives_while_it_speaks_and_listens(
    workers: Workers, clock: Clock, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        clock.now += 7
        await workers.registered("w", 1, path, set())
        assert workers.alive("w", 1)
        assert not workers.alive("w", 2)
        clock.now += 7
        assert not workers.alive("w", 1), "it listens, and says nothing"
        await workers.registered("w", 1, path, set())
    assert not workers.alive("w", 1), "nobody listens any more"
    assert not workers.alive("other", 1)


async def test_after_its_own_start_an_agent_waits_for_workers_it_has_not_heard(
    workers: Workers, clock: Clock
) -> None:
    assert workers.alive("w", 1)
    clock.now += 7
    assert not workers.alive("w", 1)
