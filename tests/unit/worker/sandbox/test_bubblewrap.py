import subprocess
from pathlib import Path

from atenet.worker.sandbox import Bind, ContainerPlan
from atenet.worker.sandbox.bubblewrap import (
    Descriptors,
    SystemView,
    arguments,
    command,
    start_script,
)

PLAN = ContainerPlan(
    name="main",
    command=("serve",),
    environment={"TOKEN": "hush"},
    working_dir="/data",
    binds=(Bind(Path("/state/data"), "/data", False), Bind(Path("/opt/x"), "/opt/x", True)),
)
SYSTEM = SystemView(("/usr",), (("/bin", "usr/bin"),), ("/etc/ssl/certs",))


def test_the_command_line_shows_nothing_of_the_template() -> None:
    words = command(Path("/run/netns/x"), 1610612737, Descriptors(5, 6, 7, 8))
    assert words[:2] == ["nsenter", "--net=/run/netns/x"]
    assert not {"serve", "hush", "/data"} & set(" ".join(words).split())


def test_only_what_giving_up_takes_is_kept_and_then_given_up() -> None:
    inside = arguments(PLAN, "agent", SYSTEM, {}, Path("/start"))
    kept = [inside[i + 1] for i, word in enumerate(inside) if word == "--cap-add"]
    assert inside.index("--cap-drop") < inside.index("--cap-add")
    assert sorted(kept) == ["CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"]
    words = command(Path("/run/netns/x"), 1610612737, Descriptors(5, 6, 7, None))
    given_up = words[words.index("/usr/bin/setpriv") :]
    for flag in ("--reuid=1610612737", "--clear-groups", "--bounding-set=-all", "--no-new-privs"):
        assert flag in given_up
    assert "--seccomp" not in words


def test_durable_directories_are_writable_and_all_else_is_not() -> None:
    inside = arguments(PLAN, "agent", SYSTEM, {"hosts": Path("/e/hosts")}, Path("/start"))
    writable = [inside[i + 2] for i, word in enumerate(inside) if word == "--bind"]
    assert writable == ["/data"]
    assert inside[-4:] == ["--remount-ro", "/", "--chdir", "/data"]


def test_the_start_script_is_one_exec_with_exactly_the_environment(tmp_path: Path) -> None:
    script = tmp_path / "start"
    odd = {"A": "it's", "B": 'a "b" $HOME `id`\nline', "PATH": "/usr/bin:/bin"}
    script.write_text(start_script(odd, ["/usr/bin/env", "-0"]))
    done = subprocess.run(
        ["/bin/sh", str(script)], env={"LEAK": "x"}, capture_output=True, text=True, check=True
    )
    assert dict(line.split("=", 1) for line in done.stdout.split("\0")[:-1]) == odd


def test_this_hosts_system_is_found() -> None:
    found = SystemView.scan()
    assert "/usr" in found.directories
    assert {"/bin", "/lib"} <= {*found.directories, *(link for link, _ in found.links)}
