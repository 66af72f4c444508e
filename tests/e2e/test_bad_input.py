"""What cannot work says why, names the flag or the file, and hints at what to do."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.local_system import COUNTER, Ate, Ran, ate_home

pytestmark = pytest.mark.timeout(180)


def refused(ran: Ran, *words: str, code: int = 1) -> None:
    """Two lines on stderr that say these things; nothing on stdout."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert "error: " in ran.err
    assert "\nhint: " in ran.err
    assert "Traceback" not in ran.err, ran
    for word in words:
        assert word in ran.err, f"{word!r} is not in:\n{ran.err}"


def test_a_taken_port_is_named_by_its_flag(ate: Ate) -> None:
    address = ate.network[1]
    with socket.create_server((address, 8443)):
        refused(ate.up(), "--https-port", f"{address}:8443 is taken by", "another --https-port")
    assert ate.left_behind() == []


def test_without_the_right_to_make_namespaces_it_says_what_to_do(ate: Ate) -> None:
    drop = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--")
    refused(ate("up", prefix=drop), "CAP_SYS_ADMIN", "sudo")


def test_a_second_up_is_told_that_one_is_running(ate: Ate) -> None:
    assert ate.up("--workers", "1").code == 0
    refused(ate.up(), "already running", "ate down")
    ate.good("status")
    assert ate.good("down").out == "down\n"


def test_two_systems_run_side_by_side(ate: Ate) -> None:
    with ate_home() as other:
        assert ate.up("--workers", "1").code == 0
        assert other.up("--workers", "1").code == 0
        for one, count in ((ate, 1), (other, 2)):
            one.furnish("one")
            for _ in range(count):
                one.count(add=True)
        assert ate.good("down").out == "down\n"
        assert ate.left_behind() == []
        assert other.count() == 2
        assert other.good("down").out == "down\n"
        assert other.left_behind() == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("ca/pod-identity.key", "not a key"),
        ("trust/service-dns.pem", "not a bundle"),
        ("identity/router/pod.pem", "not a credential"),
        ("ateapi/ate.db", "not a database" * 100),
    ],
)
def test_a_damaged_file_is_named(ate: Ate, file: str, content: str) -> None:
    assert ate.up("--workers", "1").code == 0
    ate.good("down")
    (ate.layout.home / file).write_text(content)
    ran = ate.up("--workers", "1")
    refused(ran, file.rsplit("/", 1)[1])
    assert ate.left_behind() == []


@pytest.mark.parametrize(
    "place",
    [
        *("run/supervisor.json", "run/supervisor.sock", "run/lock", "config/egress.yaml"),
        *("logs/ateapi.log", "nodes/local/run/atelet.sock"),
    ],
)
def test_a_directory_in_the_place_of_a_file_is_named(ate: Ate, place: str) -> None:
    (ate.layout.home / place).mkdir(parents=True)
    for path in (ate.layout.home, *ate.layout.home.rglob("*")):
        path.chmod(0o700)
    refused(ate.up("--workers", "1"), str(ate.layout.home / place), "Is a directory")
    assert ate.left_behind() == []


def test_a_lost_store_is_not_taken_for_a_new_one(ate: Ate) -> None:
    assert ate.up("--workers", "1").code == 0
    ate.furnish("one")
    ate.count(add=True)
    ate.good("actor", "suspend", "demo/one")
    ate.good("down")
    for file in ate.layout.store.parent.glob("ate.db*"):
        file.unlink()
    refused(ate.up("--workers", "1"), "ate.db is missing", "snapshots", "backup")


def test_a_failed_start_is_told_by_its_own_words_not_by_those_of_an_earlier_one(ate: Ate) -> None:
    assert ate.up("--workers", "1").code == 0
    ate.good("down")
    ate.layout.store.write_text("not a database" * 100)
    ran = ate.up("--workers", "1")
    refused(ran, "ate.db")
    assert "draining" not in ran.err, ran


def test_a_file_in_the_place_of_the_state_directory_is_named(ate: Ate, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    refused(ate("up", "--home", tmp_path / "home"), "home", "not a directory")


def test_a_state_directory_too_deep_for_sockets_is_refused(ate: Ate, tmp_path: Path) -> None:
    refused(ate("up", "--home", tmp_path / ("x" * 100)), "--home", "too long", "shorter")


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--workers", "0"], "--workers"),
        (["--address", "10.0.0.1"], "--address"),
        (["--https-port", "http"], "--https-port"),
        (["--park-budget", "soon"], "--park-budget"),
        (["--allow-host-path", "/does/not/exist"], "--allow-host-path"),
        (["--log-level", "loud"], "--log-level"),
        (["--tunnel-port", "7448"], "--tunnel-port"),
        (["--egress-origin-roots", "/etc/passwd"], "--egress-origin-roots"),
        (["--sleep"], "--sleep"),
    ],
)
def test_a_bad_flag_is_named_before_anything_starts(ate: Ate, flags: list[str], word: str) -> None:
    refused(ate("up", *flags), word, code=2)
    assert not ate.layout.record.exists()


def test_a_broken_record_does_not_keep_down_from_working(ate: Ate) -> None:
    assert ate.up("--workers", "1").code == 0
    ate.kill("supervisor")
    ate.layout.record.write_text("{")
    refused(ate("status"), "ate down", code=4)
    assert "cleaned up" in ate.good("down").out
    assert ate.left_behind() == []


def test_commands_without_a_system_say_how_to_start_one(ate: Ate) -> None:
    for words in (["status"], ["actor", "list"], ["curl", "a/b"], ["atespace", "create", "a"]):
        refused(ate(*words), "ate up", code=4)


def test_what_the_control_plane_refuses_is_passed_on_with_its_field(running: Ate) -> None:
    refused(running("actor", "create", "demo/x", "-t", "nothing"), "nothing", "ate template list")
    refused(running("actor", "create", "demo/x", "-t", "No Name"), "--template", code=2)
    refused(running("actor", "create", "nowhere/x", "-t", "demo/counter"), "nowhere")
    refused(running("actor", "create", "demo/one", "-t", "counter"), "already exists", code=2)
    refused(running("atespace", "create", "demo"), "already exists", code=2)
    refused(running("actor", "get", "demo/nobody"), "nobody", code=3)
    refused(running("actor", "get", "Demo"), "<atespace>/<name>", code=2)
    refused(running("curl", "demo/one", "-H", "no colon"), "--header", code=2)
    refused(running("curl", "demo/one", "-m", "-1"), "--max-time", code=2)
    refused(running("template", "create", "-f", "/does/not/exist"), "/does/not/exist", code=2)
    refused(running("snapshot", "gc", "--older-than", "soon"), "--older-than", code=2)
    running.count()
    refused(running("actor", "delete", "demo/one"), "demo/one", "--force")


def test_a_template_with_a_mistake_is_told_by_line(running: Ate, tmp_path: Path) -> None:
    text = (COUNTER / "template.yaml").read_text().replace("wakeupProbe:", "wakeUpProbe:")
    (tmp_path / "t.yaml").write_text(text)
    ran = running("template", "create", "-f", tmp_path / "t.yaml")
    refused(ran, "t.yaml, line", "wakeUpProbe", "did you mean `wakeupProbe`?", code=2)


def test_a_template_that_mounts_what_is_not_allowed_fails_with_the_reason(
    running: Ate, tmp_path: Path
) -> None:
    text = (COUNTER / "template.yaml").read_text().replace("{path: .}", "{path: /etc}")
    (tmp_path / "t.yaml").write_text(text.replace("name: counter", "name: nosy", 1))
    running.good("template", "create", "-f", tmp_path / "t.yaml")
    running.good("actor", "create", "demo/nosy", "-t", "nosy")
    ran = running("actor", "resume", "demo/nosy")
    assert ran.code != 0
    assert "/etc" in ran.err
    assert json.loads(running.good("actor", "get", "demo/nosy", "-o", "json").out)
    running.good("actor", "delete", "demo/nosy", "--force")


def test_an_actor_that_no_workers_labels_match_is_told_of_them(running: Ate) -> None:
    running.good("actor", "create", "demo/elsewhere", "-t", "counter", "-l", "zone=a")
    refused(running("actor", "resume", "demo/elsewhere"), "selector", "labels")
    running.good("actor", "delete", "demo/elsewhere", "--force")


def test_who_waits_for_a_control_plane_that_hangs_is_told(running: Ate) -> None:
    stopped = [running.pid("ateapi"), running.pid("ateapi's front")]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        ran = running("status")
        assert ran.code == 1, ran
        assert "asking the control plane ..." in ran.err
        assert "worker-1" in ran.out, "the processes are known all the same"
        assert "workers and actors: " in ran.out
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_curl_waits_no_longer_than_it_was_told(running: Ate) -> None:
    running("actor", "suspend", "demo/one")
    refused(running("curl", "demo/one", "-m", "0.001"), "demo/one in 0.001 s", "--max-time")
