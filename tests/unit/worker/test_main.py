"""The worker as a process: how it starts, what is left when it ends, however it ends."""

import asyncio
import shutil
import stat
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from atenet.errors import AteError
from atenet.worker.main import _watched
from atenet.worker.network import netns

from tests.support.actor_box import ask, http_probe, kill_actor, processes_of, put, template
from tests.support.eventually import eventually
from tests.support.node import Node, RunningWorker, node

# An actor's account follows from its uid: no other run on this machine has the same one.
UID = str(uuid4())
PROGRAM = str(Path(sys.executable).with_name("ateworker"))


@pytest.fixture
async def here(root: None, tmp_path: Path) -> AsyncIterator[Node]:
    async with node(tmp_path) as made:
        await made.start_worker("worker-1")
        yield made


async def running_actor(here: Node, uid: str = UID) -> Path:
    await here.run(here.handle("worker-1", uid), template(probe=http_probe()))
    return await here.gateway("worker-1")


def cgroups(worker: RunningWorker) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/atenet/{worker.prefix}*"))


@pytest.mark.conformance("C-05")
async def test_a_killed_worker_leaves_no_process_and_the_next_start_clears_the_rest(
    here: Node,
) -> None:
    worker = here.workers["worker-1"]
    await running_actor(here)
    used = set(netns.names(worker.prefix))
    assert len(processes_of(UID)) >= 1
    await here.kill(worker.process)
    await eventually(lambda: processes_of(UID) == [])
    assert set(netns.names(worker.prefix)) >= used
    again = await here.restart(worker)
    assert not used & set(netns.names(worker.prefix))
    assert list((here.root / "worker-1" / "run").glob("*")) == []
    assert again.prefix == worker.prefix


async def test_sigterm_stops_actors_cleans_up_and_exits_with_0(here: Node) -> None:
    worker = here.workers["worker-1"]
    gateway = await running_actor(here)
    await ask(gateway, put(b"kept"))
    assert await here.stop(worker.process) == 0
    assert processes_of(UID) == []
    assert netns.names(worker.prefix) == []
    assert cgroups(worker) == []
    assert not (here.root / "worker-1.sock").exists()
    assert (here.volume(UID) / "greeting").read_text() == "kept"


async def test_its_last_word_is_that_nothing_is_hosted(here: Node) -> None:
    await running_actor(here)
    await eventually(lambda: UID in here.registrar.last("worker-1").hosted_actor_uids)
    await here.stop(here.workers["worker-1"].process)
    last = here.registrar.last("worker-1")
    assert list(last.hosted_actor_uids) == []
    assert last.worker.status.state == 2  # draining


# B153
async def test_a_machine_without_nftables_is_told_so_at_the_start(
    root: None, tmp_path: Path
) -> None:
    async with node(tmp_path) as made:
        await made.start_worker("worker-1")
        worker = made.workers["worker-1"]
        await made.stop(worker.process)
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("ip", "bwrap", "nsenter", "setpriv"):
            found = shutil.which(name)
            assert found is not None
            (tools / name).symlink_to(found)
        run = await asyncio.create_subprocess_exec(
            PROGRAM,
            *worker.arguments,
            env={"PATH": str(tools)},
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(30):
            _, said = await run.communicate()
        assert run.returncode == 1
        assert b"nft is not installed" in said
        assert netns.names(worker.prefix) == []


async def test_its_numbers_of_actors_egress_are_shown_where_it_is_told(
    root: None, tmp_path: Path
) -> None:
    async with node(tmp_path) as made:
        worker = await made.start_worker("worker-1", "--stats-listen", "127.0.0.1:0")
        url = f"http://{worker.addresses['stats']}/metrics"
        shown = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        assert "ateworker_egress_tunnels_open 0\n" in shown


async def test_it_registers_who_and_where_it_is(here: Node) -> None:
    worker = here.workers["worker-1"]
    seen = here.registrar.last("worker-1")
    assert seen.worker.worker_pool == "local"
    assert seen.worker.worker_namespace == "default"
    assert seen.worker.spiffe_id == "spiffe://cluster.local/ns/default/sa/local"
    assert seen.worker.node_name == "node-1"
    assert seen.worker.node_endpoint == here.address
    assert list(seen.worker.ips) == [worker.ip]
    assert seen.worker.sandbox_class == "process"
    assert seen.capacity.actors == 4
    assert worker.addresses == {"atunnel": f"{worker.ip}:8443"}


async def test_each_start_has_a_higher_epoch(here: Node) -> None:
    worker = here.workers["worker-1"]
    for _ in range(2):
        await here.stop(worker.process)
        worker = await here.restart(worker)
    epochs = here.registrar.epochs("worker-1")
    assert len(epochs) == 3
    assert epochs == sorted(epochs)


async def test_it_survives_a_restart_of_its_agent(here: Node) -> None:
    assert here.atelet is not None
    await running_actor(here)
    await here.kill(here.atelet)
    seen = len(here.registrar.seen["worker-1"])
    await here.start_atelet()
    await eventually(lambda: len(here.registrar.seen["worker-1"]) > seen)
    await eventually(lambda: list(here.registrar.last("worker-1").hosted_actor_uids) == [UID])
    assert len(here.registrar.epochs("worker-1")) == 1


async def test_an_actors_end_is_reported_at_once(here: Node) -> None:
    await running_actor(here)
    await eventually(lambda: UID in here.registrar.last("worker-1").hosted_actor_uids)
    kill_actor(UID)
    await eventually(
        lambda: UID not in here.registrar.last("worker-1").hosted_actor_uids, seconds=1.9
    )


async def test_its_socket_is_for_root_alone(here: Node) -> None:
    for name in ("worker-1.sock", "atelet.sock"):
        assert stat.S_IMODE((here.root / name).stat().st_mode) == 0o600


async def test_it_says_nothing_on_stdout_and_json_on_stderr(here: Node) -> None:
    import json

    await running_actor(here)
    lines = here.workers["worker-1"].log.read_text().splitlines()
    assert [json.loads(line)["process"] for line in lines] == ["worker-1"] * len(lines)
    started = next(line for line in map(json.loads, lines) if line["message"] == "actor started")
    assert started["actor_uid"] == UID
    assert started["sandbox_ms"] > 0


async def test_a_start_in_flight_is_given_up_by_sigterm(here: Node) -> None:
    worker = here.workers["worker-1"]
    never = template("sh", "-c", "while :; do sleep 1; done", probe=http_probe(seconds=60))
    starting = asyncio.ensure_future(here.run(here.handle("worker-1", UID), never))
    await eventually(lambda: processes_of(UID) != [])
    assert await here.stop(worker.process) == 0
    with pytest.raises(Exception, match=r"given up|UNAVAILABLE|Socket closed"):
        await starting
    assert netns.names(worker.prefix) == []


def flags(tmp_path: Path, **changed: str) -> list[str]:
    values = {
        "name": "worker-1",
        "ip": "127.0.0.1",
        "listen": "127.0.0.1:0",
        "atelet-socket": str(tmp_path / "a"),
        "socket": str(tmp_path / "s"),
        "credential": str(tmp_path / "pod.pem"),
        "trust": str(tmp_path / "trust.pem"),
        "state-dir": str(tmp_path / "state"),
        "net-prefix": "tbad-",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    return [word for name, value in values.items() for word in (f"--{name}", value)]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "Worker"}, "--name 'Worker'"),
        ({"net_prefix": "x"}, "net-prefix 'x'"),
        ({"cgroup_root": "mine"}, "--cgroup-root 'mine' is not one of root, own"),
        ({"slots": "0"}, "--slots 0"),
        ({"slots": "many"}, "--slots"),
        ({"label": "novalue"}, "--label 'novalue'"),
        ({"suspend_grace": "soon"}, "--suspend-grace"),
        ({"network_pool": "-1"}, "--network-pool -1"),
        ({"unknown": "x"}, "--unknown"),
        ({"log_level": "loud"}, "--log-level"),
        ({"state_dir": "/dev/null/x"}, "--state-dir /dev/null/x"),
        ({}, "pod.pem"),
    ],
)
def test_a_wrong_flag_is_named(tmp_path: Path, changed: dict[str, str], named: str) -> None:
    done = subprocess.run(
        [PROGRAM, *flags(tmp_path, **changed)], capture_output=True, text=True, timeout=30
    )
    assert done.returncode in (1, 2)
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_names_every_flag() -> None:
    from dataclasses import fields

    from atenet.flags import flag_name
    from atenet.worker.settings import WorkerSettings

    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    for field in fields(WorkerSettings):
        assert flag_name(field.name) in done.stdout


async def test_another_workers_prefix_is_refused_and_its_actors_live_on(here: Node) -> None:
    """What is under the prefix is cleared at a start, so it must be nobody's."""
    await running_actor(here)
    words = list(here.workers["worker-1"].arguments)
    words[words.index("--state-dir") + 1] = str(here.root / "other")
    done = await asyncio.to_thread(
        subprocess.run, [PROGRAM, *words], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "--net-prefix" in done.stderr
    assert "used by another worker" in done.stderr
    assert processes_of(UID) != []


async def test_another_workers_directory_is_refused(here: Node) -> None:
    words = list(here.workers["worker-1"].arguments)
    words[words.index("--net-prefix") + 1] = "tother-"
    done = await asyncio.to_thread(
        subprocess.run, [PROGRAM, *words], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "--state-dir" in done.stderr
    assert "used by another process" in done.stderr


async def test_a_taken_address_is_named(here: Node) -> None:
    worker = here.workers["worker-1"]
    words = [*worker.arguments, "--log-level", "error"]
    words[words.index("--net-prefix") + 1] = "tother-"
    words[words.index("--state-dir") + 1] = str(here.root / "other")
    done = await asyncio.to_thread(
        subprocess.run, [PROGRAM, *words], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert worker.addresses["atunnel"] in done.stderr
    assert "hint:" in done.stderr


async def test_a_worker_that_can_no_longer_register_stops_and_says_why() -> None:
    async def broken() -> None:
        raise RuntimeError("no more heartbeats")

    stop = asyncio.Event()
    with pytest.raises(AteError, match="no more heartbeats"):
        async with _watched({"the registration": broken()}, stop):
            await stop.wait()
