import signal
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.network import netns
from atenet.worker.sandbox import (
    Bind,
    InvalidTemplateError,
    Limits,
    LimitsUnavailableError,
    account_of,
)

from tests.support.actor_box import ActorBox, processes_of, python
from tests.support.eventually import eventually


async def test_the_exit_status_and_the_last_lines_are_told(box: ActorBox) -> None:
    ended, _ = await box.run("sh", "-c", "echo first; echo 'the reason' >&2; exit 7")
    assert (ended.container, ended.status) == ("main", 7)
    assert "exited with status 7" in str(ended)
    assert ended.last_lines == "first\nthe reason"


async def test_a_signals_death_is_128_and_the_signal(box: ActorBox) -> None:
    ended, _ = await box.run("sh", "-c", "kill -TERM $$")
    assert ended.status == 128 + signal.SIGTERM


async def test_a_program_that_is_not_there_is_named(box: ActorBox) -> None:
    ended, said = await box.run("no-such-program")
    assert ended.status == 127
    assert "no-such-program" in said


async def test_words_reach_the_command_as_they_are(box: ActorBox) -> None:
    words = ["it's", '"$HOME"', "`id`", "a\nb", "", "*", "--", "-x", "ü"]
    _, said = await box.run(
        "/usr/bin/python3",
        "-c",
        "import sys, json; print(json.dumps(sys.argv[1:]))",
        *words,
        env={"LANG": "C.UTF-8"},
    )
    import json

    assert json.loads(said) == words


async def test_files_in_a_durable_directory_stay(box: ActorBox) -> None:
    await box.run("sh", "-c", "echo kept > /data/file", uid="uid-keeps")
    _, said = await box.run("cat", "/data/file", uid="uid-keeps")
    assert said == "kept\n"
    assert (box.data_of("uid-keeps") / "file").stat().st_uid == account_of("uid-keeps")


async def test_a_directory_of_root_is_handed_over_whole(box: ActorBox) -> None:
    data = box.data_of("uid-restored")
    (data / "deep").mkdir(parents=True)
    (data / "deep" / "file").write_text("old")
    (data / "deep").chmod(0o700)
    (data / "out").symlink_to("/etc/hostname")
    before = Path("/etc/hostname").stat().st_uid
    _, said = await box.run(
        "sh", "-c", "echo new > /data/deep/file; cat /data/deep/file", uid="uid-restored"
    )
    assert said == "new\n"
    assert Path("/etc/hostname").stat().st_uid == before


async def test_host_paths_are_read_only(box: ActorBox, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    shown.chmod(0o777)
    bind = Bind(shown, "/opt/shown", read_only=True)
    _, said = await box.run("sh", "-c", "touch /opt/shown/x", binds=(bind,))
    assert "Read-only file system" in said


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


async def test_what_does_not_want_to_stop_is_killed_with_all_its_children(box: ActorBox) -> None:
    script = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & touch /data/up; while :; do sleep 1; done"
    network = await box.networks.acquire()
    group = await box.sandbox.start(
        box.launch("sh", "-c", script, network=network, uid="uid-stays")
    )
    await eventually((box.data_of("uid-stays") / "up").exists)
    assert len(processes_of("uid-stays")) >= 3
    await group.stop(0.05)
    assert processes_of("uid-stays") == []
    assert netns.processes_inside([network.runtime]) == []
    await box.networks.release(network)


async def test_nothing_is_left_on_the_host(box: ActorBox, tmp_path: Path) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await box.run("true", limits=Limits(memory_bytes=64 << 20))
    # Fewer, where something that an earlier test left is collected meanwhile.
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    assert list((tmp_path / "scratch").glob("*")) == []
    assert list(Path("/sys/fs/cgroup").glob(f"*/atenet/{box.prefix}*")) == []
    assert [
        line for line in Path("/proc/mounts").read_text().splitlines() if str(tmp_path) in line
    ] == []


async def test_a_start_that_fails_leaves_nothing(box: ActorBox, tmp_path: Path) -> None:
    network = await box.networks.acquire()
    launch = box.launch(
        "true", network=network, binds=(Bind(tmp_path / "gone", "/x", read_only=True),)
    )
    with pytest.raises(AteError, match="gone, to be mounted at /x, is missing"):
        await box.sandbox.start(launch)
    await box.networks.release(network)
    assert list((tmp_path / "scratch").glob("*")) == []


async def test_a_network_that_is_gone_is_an_error_not_a_hang(box: ActorBox) -> None:
    network = await box.networks.acquire()
    await box.networks.release(network)
    with pytest.raises(AteError, match="could not start"):
        await box.sandbox.start(box.launch("true", network=network))


async def test_memory_is_limited(box: ActorBox) -> None:
    hungry = python("x = b'x' * (256 << 20); print('had it')")
    _, said = await box.run(*hungry)
    assert said == "had it\n"
    ended, said = await box.run(*hungry, limits=Limits(memory_bytes=64 << 20))
    assert ended.status == 128 + signal.SIGKILL
    assert "had it" not in said


async def test_the_cpu_quota_is_set_for_all_that_the_actor_starts(box: ActorBox) -> None:
    _, said = await box.run("cat", "/proc/self/cgroup", limits=Limits(cpu_milli=500))
    assert f"atenet/{box.prefix}" in said


async def test_limits_that_cannot_be_enforced_are_refused(
    box: ActorBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from atenet.worker.sandbox import Cgroups

    monkeypatch.setattr(box.sandbox, "_cgroups", Cgroups(box.prefix, tmp_path / "no-cgroups"))
    network = await box.networks.acquire()
    with pytest.raises(LimitsUnavailableError, match=r"template.resources"):
        await box.sandbox.start(box.launch("true", network=network, limits=Limits(cpu_milli=1)))
    await box.networks.release(network)
    _, said = await box.run("echo", "without limits it runs")
    assert said == "without limits it runs\n"


def test_images_are_refused_by_name(box: ActorBox) -> None:
    template = pb.ActorTemplate(containers=[pb.Container(name="main", image="debian")])
    with pytest.raises(InvalidTemplateError, match=r"template.containers\[0\].image 'debian'"):
        box.sandbox.check(template)


async def test_dev_stdout_can_be_opened(box: ActorBox) -> None:
    _, said = await box.run("sh", "-c", "echo through > /dev/stdout; echo twice > /dev/stderr")
    assert said == "through\ntwice\n"
