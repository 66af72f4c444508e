import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.gvisor import STATES
from atenet.worker.network import NetworkPair, netns
from atenet.worker.sandbox import (
    Bind,
    GvisorSandbox,
    Limits,
    MemoryNotSavedError,
    MemoryUnusableError,
    NotNowError,
)
from atenet.worker.sandbox.gvisor import bundle
from atenet.worker.sandbox.gvisor import runsc as runsc_module
from atenet.worker.sandbox.gvisor import sandbox as sandbox_module
from atenet.worker.sandbox.gvisor.bundle import ACCOUNT
from atenet.worker.sandbox.gvisor.runsc import processes
from atenet.worker.sandbox.plan import ContainerPlan

from tests.support.actor_box import GET, ActorBox, ask, python
from tests.support.eventually import eventually, within
from tests.support.failing_runsc import FailingRunsc
from tests.support.gvisor_box import COUNTER, gvisor_box, runsc


@pytest.fixture
async def box(root: None, tmp_path: Path) -> AsyncIterator[ActorBox]:
    async with gvisor_box(tmp_path) as made:
        yield made


@pytest.fixture
def small_disk(root: None, tmp_path: Path) -> Iterator[Path]:
    """One that holds 2 MiB."""
    where = tmp_path / "small"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "small", where], check=True)
    yield where
    subprocess.run(["umount", where], check=True)


@pytest.fixture
def not_executable(root: None, tmp_path: Path) -> Iterator[Path]:
    """As /dev/shm of a pod is, and /run of many a machine. Its path is short, for there are sockets in it."""
    with TemporaryDirectory(prefix="ate-", dir="/tmp") as where:
        options = "mode=700,nosuid,nodev,noexec"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "memory", where], check=True)
        yield Path(where)
        subprocess.run(["umount", where], check=True)


async def _get(network: NetworkPair, path: str = "/", port: int = 80) -> str:
    """The body, once the actor answers."""
    request = GET.replace(b"GET /", b"GET " + path.encode(), 1)
    answers: list[bytes] = []

    async def answered() -> bool:
        with suppress(OSError):
            answers.append(await ask(network.gateway_path, request, port))
        return any(answers)

    await eventually(answered)
    return answers[-1].partition(b"\r\n\r\n")[2].decode()


async def test_the_exit_status_and_the_last_lines_are_told(box: ActorBox) -> None:
    ended, _ = await box.run("sh", "-c", "echo first; echo 'the reason' >&2; sleep 1; exit 7")
    assert (ended.container, ended.status) == ("main", 7)
    assert ended.last_lines == "first\nthe reason"


async def test_an_end_that_comes_at_once_is_told_with_its_last_lines(box: ActorBox) -> None:
    ended, _ = await box.run("sh", "-c", "echo 'the reason' >&2; exit 7")
    assert ended.status in (7, -1)
    assert "the reason" in str(ended)


async def test_a_program_that_is_not_there_is_named(box: ActorBox) -> None:
    network = await box.networks.acquire()
    with pytest.raises(AteError, match="no-such-program"):
        await box.sandbox.start(box.launch("no-such-program", network=network))
    await box.networks.release(network)
    assert _left(box) == []


async def test_it_runs_on_a_kernel_of_its_own_as_nobody_in_particular(box: ActorBox) -> None:
    words = "import os; print(os.getuid(), os.uname().nodename, os.uname().release)"
    _, said = await box.run(*python(words))
    assert said.split()[:2] == [str(ACCOUNT), "actor"]
    assert said.split()[2] != os.uname().release
    _, said = await box.run("grep", "-E", "CapEff|CapBnd|NoNewPrivs", "/proc/self/status")
    assert said.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


async def test_it_finds_who_it_is_in_files_and_not_in_its_environment(box: ActorBox) -> None:
    network = await box.networks.acquire()
    launch = box.launch(
        *python(COUNTER),
        network=network,
        env={"ATE_ACTOR": "agent", "SEEN": "1"},
        facts={"actor-id": "team/agent"},
    )
    group = await box.sandbox.start(launch)
    try:
        assert await _get(network, "/who") == "team/agent"
        told = (await _get(network, "/read/proc/self/environ")).split("\0")
        assert "SEEN=1" in told
        assert not any(word.startswith("ATE_") for word in told)
    finally:
        await group.stop(0)
        await box.networks.release(network)


async def test_the_hosts_files_are_not_there_and_host_paths_are_read_only(
    box: ActorBox, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    shown.chmod(0o777)
    bind = Bind(shown, "/opt/shown", read_only=True)
    _, said = await box.run("sh", "-c", "touch /opt/shown/x; touch /usr/x; ls /root", binds=(bind,))
    assert "/opt/shown/x': Read-only file system" in said
    assert "/usr/x': Permission denied" in said
    assert "cannot access '/root'" in said


async def test_memory_whose_mount_is_noexec_is_no_obstacle(
    not_executable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "STATES", not_executable)
    async with gvisor_box(tmp_path) as box:
        _, said = await box.run(
            "sh", "-c", "grep -o ^actor /etc/passwd && echo x > /tmp/new && cat /tmp/new"
        )
        assert said.split() == ["actor", "x"]


def test_without_any_place_for_the_root_directory_it_says_where_it_looked(
    not_executable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "STATES", not_executable)
    nothing: Any = None
    with pytest.raises(
        AteError, match=f"{not_executable} and .*/own are both mounted noexec"
    ) as caught:
        GvisorSandbox(runsc(), "p-", nothing, nothing, disk=not_executable / "own")
    assert "--state-dir" in (caught.value.hint or "")


async def test_files_in_a_durable_directory_stay(box: ActorBox) -> None:
    await box.run("sh", "-c", "echo kept > /data/file", uid="uid-keeps")
    _, said = await box.run("cat", "/data/file", uid="uid-keeps")
    assert said == "kept\n"


async def test_memory_goes_on_in_another_network_as_it_was(box: ActorBox, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    first = await box.networks.acquire()
    group = await box.sandbox.start(box.launch(*python(COUNTER), network=first))
    assert [await _get(first) for _ in range(3)] == ["1", "2", "3"]
    assert await _get(first, "/write/tmp/scratch") == "ok"
    await group.freeze()
    await group.save(memory)
    await group.stop(0)
    await box.networks.release(first)
    second = await box.networks.acquire()
    launch = box.launch(*python(COUNTER), network=second, memory=memory, facts={"actor-id": "a/b"})
    again = await box.sandbox.start(launch)
    try:
        assert await _get(second) == "4"
        assert await _get(second, "/read/tmp/scratch") == "written", "the writable layer is kept"
        assert await _get(second, "/who") == "a/b", "who it is, is told anew"
    finally:
        await again.stop(0)
        await box.networks.release(second)


async def test_what_was_saved_stands_still_until_it_is_let_go_on(
    box: ActorBox, tmp_path: Path
) -> None:
    (tmp_path / "memory").mkdir()
    network = await box.networks.acquire()
    group = await box.sandbox.start(box.launch(*python(COUNTER), network=network))
    assert await _get(network) == "1"
    await group.freeze()
    await group.save(tmp_path / "memory")
    with pytest.raises(TimeoutError):
        await within(ask(network.gateway_path, GET), 0.3)
    await group.thaw()
    assert int(await _get(network)) >= 2
    await group.stop(0)
    await box.networks.release(network)


async def test_memory_that_does_not_fit_on_the_disk_leaves_the_actor_as_it_was(
    box: ActorBox, small_disk: Path
) -> None:
    network = await box.networks.acquire()
    group = await box.sandbox.start(box.launch(*python(COUNTER), network=network))
    assert await _get(network) == "1"
    memory = small_disk / "memory"
    memory.mkdir()
    await group.freeze()
    with pytest.raises(MemoryNotSavedError, match="no space left on device"):
        await group.save(memory)
    assert list(memory.iterdir()) == []
    await group.thaw()
    assert await _get(network) == "2"
    await group.stop(0)
    await box.networks.release(network)


async def test_altered_memory_is_refused_with_the_reason(box: ActorBox, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    network = await box.networks.acquire()
    group = await box.sandbox.start(box.launch(*python(COUNTER), network=network))
    await _get(network)
    await group.freeze()
    await group.save(memory)
    await group.stop(0)
    await box.networks.release(network)
    state = memory / "checkpoint.img"
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])
    network = await box.networks.acquire()
    with pytest.raises(MemoryUnusableError, match="runsc restore failed"):
        await box.sandbox.start(box.launch(*python(COUNTER), network=network, memory=memory))
    await box.networks.release(network)
    assert _left(box) == []


async def test_a_restore_that_hangs_is_not_the_memorys_fault(
    box: ActorBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    network = await box.networks.acquire()
    group = await box.sandbox.start(box.launch(*python(COUNTER), network=network))
    await _get(network)
    await group.freeze()
    await group.save(memory)
    await group.stop(0)
    await box.networks.release(network)
    failing = FailingRunsc(tmp_path / "tools")
    failing.hang_once("restore")
    real, box.sandbox._runsc.program = box.sandbox._runsc.program, failing.program
    monkeypatch.setattr("atenet.worker.sandbox.gvisor.sandbox.MEMORY_SECONDS", 0.5)
    network = await box.networks.acquire()
    launch = box.launch(*python(COUNTER), network=network, memory=memory)
    with pytest.raises(NotNowError, match="did not finish"):
        await box.sandbox.start(launch)
    box.sandbox._runsc.program = real

    def no_processes(*_: object) -> None:
        raise BlockingIOError("as ordered")

    monkeypatch.setattr(box.sandbox, "_admit", no_processes)
    with pytest.raises(NotNowError, match="cannot be made: as ordered"):
        await box.sandbox.start(launch)
    await box.networks.release(network)
    assert _left(box) == []


async def test_stop_asks_first(box: ActorBox) -> None:
    source = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(3)))\n"
        "open('/data/up', 'w')\n"
        "while True: signal.pause()\n"
    )
    network = await box.networks.acquire()
    launch = box.launch(*python(source), network=network)
    group = await box.sandbox.start(launch)
    await eventually((box.data_of("uid-1") / "up").exists)
    await group.stop(20)
    await box.networks.release(network)
    assert group.exited.result().status == 3
    assert "bye" in (launch.logs / "main.log").read_text()


async def test_a_sandbox_that_is_killed_ends_its_activation(box: ActorBox) -> None:
    network = await box.networks.acquire()
    script = "sleep 1; touch /data/up; sleep 1000"
    launch = box.launch("sh", "-c", script, network=network, uid="uid-dies")
    group = await box.sandbox.start(launch)
    await eventually((box.data_of("uid-dies") / "up").exists)
    for pid in processes(lambda words: any(word.startswith("uid-dies.") for word in words)):
        os.kill(pid, signal.SIGKILL)
    ended = await group.exited
    assert ended.status == 128 + signal.SIGKILL
    await group.stop(0)
    await box.networks.release(network)


async def test_nothing_is_left_on_the_host(box: ActorBox, tmp_path: Path) -> None:
    await box.run("true")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await box.run("true", limits=Limits(memory_bytes=256 << 20))
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    assert [p.name for p in (STATES / box.prefix / "work").iterdir()] == ["root"]
    assert list(Path("/sys/fs/cgroup").glob(f"*/atenet/{box.prefix}*")) == []
    assert _left(box) == []
    box.sandbox.clear()
    assert box.prefix not in Path("/proc/mounts").read_text()
    assert not (STATES / box.prefix).exists()


async def test_a_start_after_a_kill_removes_what_was_left(box: ActorBox) -> None:
    network = await box.networks.acquire()
    group = await box.sandbox.start(box.launch("sleep", "1000", network=network))
    box.sandbox.clear()
    assert list(processes(lambda words: any(box.prefix in word for word in words))) == []
    assert _left(box) == []
    await group.exited
    await group.stop(0)
    await box.networks.release(network)
    assert netns.names(box.prefix) == []


async def test_memory_is_limited(box: ActorBox) -> None:
    hungry = python("x = b'x' * (512 << 20); print('had it')")
    _, said = await box.run(*hungry)
    assert said == "had it\n"
    ended, said = await box.run(*hungry, limits=Limits(memory_bytes=256 << 20))
    assert ended.status in (128 + signal.SIGKILL, -1)
    assert "had it" not in said


async def test_containers_of_an_actor_share_its_network_and_its_snapshot(
    box: ActorBox, tmp_path: Path
) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()

    def two(network: NetworkPair, memory: Path | None = None):  # type: ignore[no-untyped-def]
        launch = box.launch(*python(COUNTER), network=network, memory=memory)
        other = COUNTER.replace('("", 80)', '("127.0.0.1", 81)')
        relay = (
            "import http.server, urllib.request\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        b = urllib.request.urlopen('http://127.0.0.1:81/').read()\n"
            "        self.send_response(200); self.end_headers(); self.wfile.write(b)\n"
            "http.server.HTTPServer(('', 82), H).serve_forever()\n"
        )
        more = [
            replace(launch.containers[0], name=name, command=tuple(python(source)), binds=())
            for name, source in (("other", other), ("relay", relay))
        ]
        more = [replace(plan, working_dir="/") for plan in more]
        return replace(launch, containers=(*launch.containers, *more))

    network = await box.networks.acquire()
    group = await box.sandbox.start(two(network))
    assert await _get(network) == "1"
    first = int(await _get(network, port=82))
    await group.freeze()
    await group.save(memory)
    await group.stop(0)
    await box.networks.release(network)
    network = await box.networks.acquire()
    again = await box.sandbox.start(two(network, memory))
    assert await _get(network) == "2"
    assert int(await _get(network, port=82)) == first + 1
    await again.stop(0)
    await box.networks.release(network)


def _left(box: ActorBox) -> list[str]:
    state = STATES / box.prefix
    return [p.name for p in state.iterdir() if p.name not in _SHARED] if state.exists() else []


# Kept for all containers of a worker, by runsc and by us; goes with the worker.
_SHARED = ("null-netns", "work")


def test_the_bundle_holds_no_name_of_an_actor(tmp_path: Path) -> None:
    plan = ContainerPlan("main", ("true",), {"ATE_ACTOR": "me", "A": "b"}, "/", ())
    place = bundle.Place(
        root=tmp_path,
        system=(),
        facts=tmp_path,
        network=tmp_path,
        sandbox="id",
        first=True,
    )
    made = bundle.spec(plan, place)
    assert made["process"]["env"] == ["A=b"]
    assert "me" not in json.dumps(made["process"])


async def test_its_system_call_filters_are_not_compiled_anew_for_each_sandbox(
    box: ActorBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "said"
    logs.mkdir()
    debug = ("--debug", f"--debug-log={logs}/%COMMAND%.%TIMESTAMP%.log")
    monkeypatch.setattr(runsc_module, "_FLAGS", (*runsc_module._FLAGS, *debug))
    await box.run("/bin/true")
    for command in ("boot", "gofer"):
        (said,) = [path.read_text() for path in logs.glob(f"{command}.*")]
        assert "Loaded precompiled seccomp" in said
        assert "No precompiled program found" not in said
