"""Set-up: what is done when, and what a person is told who must do something first."""

import ast
import importlib.util
import marshal
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tools.conftest import TOOLS


def test_it_needs_nothing_but_the_standard_library() -> None:
    located = "../python/atenet/gvisor/locate.py"
    for script in (
        *("bootstrap.py", "containerd.py", "golang.py", "kubernetes.py", "runsc.py"),
        *("toolchain.py", "lint.py"),
        located,
    ):
        tree = ast.parse((TOOLS / script).read_text())
        roots = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        ours = {"containerd", "golang", "kubernetes", "locate", "runsc", "toolchain"}
        assert roots <= {*sys.stdlib_module_names, *ours}, script


def test_a_digest_follows_content_names_and_nothing_else(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    sources = tmp_path / "src"
    sources.mkdir()
    file = sources / "a.rs"
    file.write_text("one")
    first = bootstrap.digest([sources])
    file.touch()
    (sources / "target").mkdir()
    (sources / "target" / "built").write_text("x")
    assert bootstrap.digest([sources]) == first
    assert bootstrap.digest([sources], "python 3.12") != first
    file.write_text("two")
    second = bootstrap.digest([sources])
    assert second != first
    file.rename(sources / "b.rs")
    assert bootstrap.digest([sources]) not in (first, second)


def test_what_is_up_to_date_is_not_done_again(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(bootstrap, "run", lambda command, *_: ran.append(command))
    monkeypatch.setattr(bootstrap, "up_to_date", lambda *_: True)
    for part in ("venv", "engine", "demo"):
        bootstrap.PARTS[part]()
    assert ran == []


def test_our_modules_are_compiled_ahead_once_for_each_change(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where processes are told to write none."""
    module = tmp_path / "python" / "atenet" / "it.py"
    venv = tmp_path / ".venv"
    module.parent.mkdir(parents=True)
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    runs: list[object] = []
    run = bootstrap.run
    monkeypatch.setattr(bootstrap, "run", lambda command: (runs.append(command), run(command)))
    for number in (1, 2):
        module.write_text(f"here = {number}00")
        os.utime(module, (number, number))  # edits by hand are not in the same second
        for _ in range(2):
            bootstrap._compile_ahead()
        assert len(runs) == number
        compiled = Path(importlib.util.cache_from_source(str(module))).read_bytes()
        assert marshal.loads(compiled[16:]).co_consts[0] == number * 100


def test_a_missing_command_installs_its_package_as_root(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "run", lambda command, *_: ran.append(command))
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    monkeypatch.setattr(bootstrap, "_can_make_venv", lambda: False)
    found = {"cc": "/usr/bin/cc", "apt-get": "/usr/bin/apt-get"}
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name, path=None: found.get(name))
    bootstrap.system()
    update, install = ran
    assert update[:2] == ["apt-get", "update"]
    assert install[-4:] == ["bubblewrap", "iproute2", "nftables", "python3-venv"]


def test_the_server_s_programs_are_found_where_debian_keeps_them(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "install_packages", installed.append)
    monkeypatch.setattr(bootstrap, "COMMANDS", {})
    monkeypatch.setattr(bootstrap, "TEST_COMMANDS", {"initdb": "postgresql"})
    monkeypatch.setattr(bootstrap, "SBIN", [])
    monkeypatch.setattr(bootstrap, "POSTGRESQL", tmp_path)
    # What takes minutes where it is missing.
    monkeypatch.setattr(bootstrap, "need", lambda *_: None)
    monkeypatch.setenv("PATH", "")
    bootstrap.test()
    (tmp_path / "15" / "bin").mkdir(parents=True)
    (tmp_path / "15" / "bin" / "initdb").touch(0o755)
    bootstrap.test()
    assert installed == [["postgresql"]]


def test_without_root_it_says_exactly_what_to_run(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.SetupError, match="hint: run `sudo apt-get update && sudo apt"):
        bootstrap.install_packages(["bubblewrap"])


def test_without_apt_it_names_the_packages(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap.shutil, "which", lambda *_, **__: None)
    with pytest.raises(bootstrap.SetupError, match=r"missing: bubblewrap nftables\nhint: "):
        bootstrap.install_packages(["bubblewrap", "nftables"])


def test_a_command_that_fails_is_named(bootstrap: ModuleType) -> None:
    with pytest.raises(bootstrap.SetupError, match=r"`false` ended with 1"):
        bootstrap.run(["false"])


def test_two_set_ups_at_once_take_turns(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r})\n"
        "import bootstrap, pathlib\n"
        f"bootstrap.BUILD = pathlib.Path({str(tmp_path)!r})\n"
        "with bootstrap.one_at_a_time():\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.readline()\n"
    )

    def start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True)

    with start() as first, start() as second:
        try:
            heard = {first: _line(first), second: _line(second)}
            holder = next(process for process, line in heard.items() if line == "in\n")
            waiter = second if holder is first else first
            assert heard[waiter] == "==> waiting for another set-up in this tree\n"
            holder.communicate("\n")
            assert _line(waiter) == "in\n"
            waiter.communicate("\n")
        finally:
            first.kill()
            second.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
