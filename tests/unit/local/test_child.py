"""One supervised process, with real ones."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from atenet.local.child import Child, ChildState
from atenet.local.processes import ProcessSpec
from atenet.local.restart import FAILED_STARTS_LIMIT
from atenet.local.sweep import find_processes

from tests.support.eventually import eventually, within

MARK = f"test{os.getpid()}"
SERVES = "open({ready!r}, 'w').close(); print('serving', flush=True); import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SERVES


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Child]:
    def build(program: str, stop_seconds: float = 10.0) -> Child:
        ready = tmp_path / "ready"
        code = program.format(ready=str(ready))
        spec = ProcessSpec(
            name="it", argv=(sys.executable, "-c", code), stop_rank=0, stop_seconds=stop_seconds
        )
        return Child(
            spec,
            log_file=tmp_path / "it.log",
            ready_file=ready,
            environment={**os.environ, "ATE_SYSTEM": MARK},
            changed=lambda _: None,
        )

    return build


async def test_it_is_ready_when_its_file_is_there_and_gone_when_stopped(
    make: Callable[..., Child],
) -> None:
    child = make(SERVES)
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.state is ChildState.READY)
    assert child.pid in find_processes(MARK)
    await child.stop()
    await running
    assert child.state is ChildState.STOPPED
    assert find_processes(MARK) == []
    assert child.last_words() == ["serving"]


async def test_after_a_kill_it_is_started_again(make: Callable[..., Child]) -> None:
    child = make(SERVES)
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.state is ChildState.READY)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: child.state is ChildState.READY and child.pid not in (None, first))
    assert child.past.restarts == 1
    assert child.last_exit == -signal.SIGKILL
    await child.stop()
    await running


async def test_what_never_gets_ready_is_given_up_with_its_last_words(
    make: Callable[..., Child],
) -> None:
    child = make("print('no luck'); raise SystemExit(3)")
    await within(child.run(), 60)
    assert child.state is ChildState.FAILED
    assert child.past.failed_starts == FAILED_STARTS_LIMIT
    assert (child.last_exit, child.last_words(1)) == (3, ["no luck"])


async def test_its_last_words_are_not_those_of_an_earlier_run(
    make: Callable[..., Child], tmp_path: Path
) -> None:
    (tmp_path / "it.log").write_text("what another run had to say\n")
    child = make("print('no luck'); raise SystemExit(3)")
    await within(child.run(), 60)
    assert child.last_words() == ["no luck"]


@pytest.mark.parametrize("name", ["it.log", "ready"])
async def test_what_cannot_be_started_says_which_file_is_in_the_way(
    make: Callable[..., Child], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    child = make(SERVES)
    await within(child.run(), 60)
    assert child.state is ChildState.FAILED
    assert child.problem is not None
    assert child.problem.message == f"{tmp_path / name}: Is a directory"


async def test_what_does_not_serve_in_time_is_ended_and_told_so(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atenet.local.child.START_SECONDS", 0.05)
    child = make("import signal; signal.pause()")
    await within(child.run(), 60)
    assert (child.state, child.last_exit) == (ChildState.FAILED, -signal.SIGKILL)
    assert child.problem is not None
    assert "does not serve after 0.05 s" in child.problem.message


async def test_what_ignores_the_request_to_stop_is_killed(make: Callable[..., Child]) -> None:
    child = make(STUBBORN, stop_seconds=0.2)
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.state is ChildState.READY)
    await child.stop()
    await running
    assert child.last_exit == -signal.SIGKILL
    assert find_processes(MARK) == []


async def test_stopping_during_the_pause_before_a_restart_is_prompt(
    make: Callable[..., Child],
) -> None:
    child = make("raise SystemExit(1)")
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.state is ChildState.WAITING)
    await child.stop()
    await within(running, 5)
    assert child.state is ChildState.STOPPED


async def test_it_does_not_outlive_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    program = f"""
import asyncio, os
from pathlib import Path
from atenet.local.child import Child
from atenet.local.processes import ProcessSpec
code = {SERVES.format(ready=str(ready))!r}
spec = ProcessSpec(name="it", argv=({sys.executable!r}, "-c", code), stop_rank=0, stop_seconds=1)
child = Child(spec, log_file=Path({str(tmp_path / "log")!r}), ready_file=Path({str(ready)!r}),
              environment=dict(os.environ, ATE_SYSTEM={MARK!r}), changed=lambda _: None)
asyncio.run(child.run())
"""
    supervisor = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await eventually(ready.exists)
    assert len(find_processes(MARK)) == 1
    supervisor.kill()
    await supervisor.wait()
    await eventually(lambda: find_processes(MARK) == [])
