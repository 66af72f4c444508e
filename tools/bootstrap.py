#!/usr/bin/env python3
"""Sets up what a make target needs: `tools/bootstrap.py system venv engine demo test bench`.

Standard library only, for it is the first thing that runs on a fresh machine. Each part is skipped
at no cost when what it is made from has not changed: a stamp holds the hash of its inputs.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import containerd
import golang
import kubernetes
import runsc
import toolchain

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VENV = ROOT / ".venv"
DEMO = BUILD / "demo"
MITMPROXY = BUILD / "mitmproxy"
REQUIREMENTS = ROOT / "requirements"

# What the running system and the build call, and the Debian package that brings it.
COMMANDS = {
    "bwrap": "bubblewrap",  # the process sandbox
    "cc": "build-essential",  # the engine's TLS provider is C
    "ip": "iproute2",  # namespaces and links, by hand
    "nft": "nftables",  # actors have no way out
}
# What only `make test` wants: a database server and Kubernetes' store, which the tests start
# themselves, and programs that fetch through the egress gateway as people's actors do.
TEST_COMMANDS = {
    "curl": "curl",
    "etcd": "etcd-server",
    "git": "git",
    "initdb": "postgresql",
    "node": "nodejs",
    "openssl": "openssl",
}
# The measures' load generators, origin and peers; only `make bench` wants them.
BENCH_COMMANDS = {
    "h2load": "nghttp2-client",
    "haproxy": "haproxy",
    "nginx": "nginx-light",
    "wrk": "wrk",
}
# What a node is made of besides what is built; only `make node` wants them.
NODE_COMMANDS = {
    **{name: TEST_COMMANDS[name] for name in ("etcd", "initdb")},
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "mmdebstrap": "mmdebstrap",
    "runc": "runc",
    "strip": "binutils",
}
# These packages start a server when they are installed; tests and measures want the program alone.
TEST_SERVICES = ("etcd",)
BENCH_SERVICES = ("haproxy", "nginx")
SBIN = ["/usr/local/sbin", "/usr/sbin", "/sbin"]  # not on every root's PATH
POSTGRESQL = Path("/usr/lib/postgresql")  # Debian keeps the server's programs here, by version


class SetupError(Exception):
    """Something a person must do first; the text says what."""


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def digest(paths: Iterable[Path], *extra: str) -> str:
    """One hash of the files' names and contents (directories are walked) and of the extra words."""
    total = hashlib.sha256("\0".join(extra).encode())
    for path in sorted(_files(paths)):
        total.update(f"\0{path.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (p for p in path.rglob("*") if p.is_file() and "target" not in p.parts)
        elif path.is_file():
            yield path


def up_to_date(stamp: Path, key: str) -> bool:
    return stamp.is_file() and stamp.read_text() == key


def run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    """Runs one command from the top of the tree; its output is the person's to see."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise SetupError(f"`{' '.join(words)}` ended with {done.returncode}; its output is above")


# ---------------------------------------------------------------- parts


def system(commands: dict[str, str] = COMMANDS) -> None:
    """Debian packages for the commands that are missing."""
    servers = [str(found) for found in POSTGRESQL.glob("*/bin")]
    path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN, *servers])
    missing = {pkg for cmd, pkg in commands.items() if shutil.which(cmd, path=path) is None}
    if not _can_make_venv():
        missing.add("python3-venv")
    if missing:
        install_packages(sorted(missing))


def _can_make_venv() -> bool:
    """Debian ships Python without ensurepip; a virtual environment needs it."""
    if (VENV / "bin" / "python").exists():
        return True
    probe = [sys.executable, "-c", "import ensurepip, venv"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def install_packages(packages: list[str]) -> None:
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"these Debian packages (or your system's like) are missing: {' '.join(packages)}\n"
            "hint: install them with your package manager, then run the same command again"
        )
    if os.geteuid() != 0:
        raise SetupError(
            f"missing system packages: {' '.join(packages)}, and only root may install them\n"
            f"hint: run `sudo apt-get update && sudo {' '.join(install)}`, then the same again"
        )
    say(f"system packages: {' '.join(packages)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-q"], quiet)
    run(install, quiet)


def venv() -> None:
    """.venv with the pinned development requirements."""
    sources = [REQUIREMENTS / "dev.txt"]
    key = digest(sources, sys.version)
    stamp = VENV / ".requirements.stamp"
    if up_to_date(stamp, key):
        return
    if not (VENV / "bin" / "pip").exists():
        say("virtual environment in .venv")
        run([sys.executable, "-m", "venv", "--clear", VENV])
    say("Python packages from requirements/dev.txt (a minute or so the first time)")
    run([VENV / "bin" / "pip", "install", "-q", "-r", sources[0]])
    stamp.write_text(key)


def engine() -> None:
    """The Rust engine, built and installed editable: atenet._engine and the commands."""
    venv()
    sources = [ROOT / "engine", ROOT / "proto", ROOT / "Cargo.toml", ROOT / "Cargo.lock"]
    key = digest([*sources, ROOT / "pyproject.toml"], sys.version)
    stamp = VENV / ".engine.stamp"
    _compile_ahead()
    if up_to_date(stamp, key) and any((ROOT / "python" / "atenet").glob("_engine*.so")):
        return
    try:
        build = toolchain.environment()
    except toolchain.ToolchainError as error:
        raise SetupError(str(error)) from error
    say("engine: maturin develop --release (some minutes the first time)")
    # pip, which maturin calls, would list every requirement that is there already.
    run([VENV / "bin" / "maturin", "develop", "--release"], {**build, "PIP_QUIET": "1"})
    stamp.write_text(key)


def _compile_ahead() -> None:
    """Our own modules, as pip does with those that it installs: where PYTHONDONTWRITEBYTECODE is set,
    each of the processes that make up a system would compile them at its start."""
    stamp, key = VENV / ".compiled.stamp", digest((ROOT / "python").rglob("*.py"), sys.version)
    if up_to_date(stamp, key):
        return
    run([VENV / "bin" / "python", "-m", "compileall", "-q", ROOT / "python"])
    stamp.write_text(key)


def demo() -> None:
    """The demo's own environment: public software that becomes actors, mounted read-only."""
    venv()
    python = sandbox_python()
    key = digest([REQUIREMENTS / "demo.txt"], python)
    stamp = DEMO / ".stamp"
    if up_to_date(stamp, key):
        return
    say("demo software from requirements/demo.txt into build/demo (httpbin, datasette, Jupyter)")
    run([python, "-m", "venv", "--clear", "--without-pip", DEMO])
    pip: list[str | Path] = [VENV / "bin" / "pip", "--python", DEMO / "bin" / "python"]
    run([*pip, "install", "-q", "-r", REQUIREMENTS / "demo.txt"])
    run([DEMO / "bin" / "python", "-m", "compileall", "-q", DEMO / "lib"])
    stamp.write_text(key)


def sandbox_python() -> str:
    """A Python that lives below /usr: the one part of the system that a sandbox sees."""
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        if python.startswith("/usr/") and Path(python).exists():
            return python
    raise SetupError("no Python below /usr\nhint: apt-get install python3")


def gvisor() -> None:
    """runsc, which keeps actors' memory: where it cannot be had, actors are of the process class."""
    try:
        runsc.ensure()
    except golang.GoError as error:
        reason = str(error).splitlines()[0]
        say(f"without gVisor: actors keep files, not memory ({reason})")


def need(*ensured: Callable[[], Path]) -> None:
    """What is built with Go, for who cannot do without. Raises SetupError."""
    try:
        for ensure in ensured:
            ensure()
    except golang.GoError as error:
        raise SetupError(str(error)) from error


def test() -> None:
    """What the tests need on top: a PostgreSQL server, Kubernetes and its store (none is left
    running), programs that fetch, and runsc."""
    system_without_services({**COMMANDS, **TEST_COMMANDS}, TEST_SERVICES)
    need(runsc.ensure, kubernetes.ensure)


def node() -> None:
    """A real node: kubelet, kube-proxy and containerd, and the control plane that it belongs to."""
    system_without_services({**COMMANDS, **NODE_COMMANDS}, TEST_SERVICES)
    need(kubernetes.ensure, kubernetes.ensure_node, containerd.ensure, runsc.ensure)


def system_without_services(commands: dict[str, str], services: Sequence[str]) -> None:
    """The same, and services that only now came are not left running."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
    started = [name for name in services if shutil.which(name, path=path) is None]
    system(commands)
    if started and Path("/run/systemd/system").is_dir():
        run(["systemctl", "disable", "--now", *started])


def bench() -> None:
    """What the measures need on top: load generators, an origin, peers and plots."""
    system_without_services({**COMMANDS, **BENCH_COMMANDS}, BENCH_SERVICES)
    venv()
    key = digest([REQUIREMENTS / "bench.txt"], sys.version)
    stamp = VENV / ".bench.stamp"
    if not up_to_date(stamp, key):
        say("Python packages from requirements/bench.txt")
        run([VENV / "bin" / "pip", "install", "-q", "-r", REQUIREMENTS / "bench.txt"])
        stamp.write_text(key)
    mitmproxy()


def mitmproxy() -> None:
    """A measure's peer, in an environment of its own: it pins what we need newer."""
    key = digest([REQUIREMENTS / "mitmproxy.txt"], sys.version)
    stamp = MITMPROXY / ".stamp"
    if up_to_date(stamp, key):
        return
    say("mitmproxy from requirements/mitmproxy.txt into build/mitmproxy")
    run([sys.executable, "-m", "venv", "--clear", MITMPROXY])
    run([MITMPROXY / "bin" / "pip", "install", "-q", "-r", REQUIREMENTS / "mitmproxy.txt"])
    stamp.write_text(key)


PARTS: dict[str, Callable[[], None]] = {
    "system": system,
    "venv": venv,
    "engine": engine,
    "demo": demo,
    "gvisor": gvisor,
    "runsc": partial(need, runsc.ensure),
    "kubernetes": partial(need, kubernetes.ensure),
    "test": test,
    "node": node,
    "bench": bench,
}


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two makes in one tree would install into the same places."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up in this tree")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    wanted = parser.parse_args().parts
    try:
        if sys.version_info < (3, 11):  # noqa: UP036 - this file is what says so
            raise SetupError(
                f"Python {sys.version.split()[0]} is too old: 3.11 or newer is needed\n"
                "hint: name a newer one: `make PYTHON=python3.11 ...`"
            )
        with one_at_a_time():
            for part in wanted:
                PARTS[part]()
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
