"""The bubblewrap command line of one container; sans-I/O.

bubblewrap runs as root without a user namespace (many kernels restrict those) and keeps just the
three capabilities with which `setpriv`, the first program inside, gives itself up: it becomes the
actor's account with an empty bounding set. Only then a script sets the template's environment and
executes the template's command, so no privileged program ever sees a variable such as LD_PRELOAD.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from atenet.worker.sandbox.account import HOME
from atenet.worker.sandbox.plan import Bind, ContainerPlan

__all__ = ["SYSTEM_FILES", "Descriptors", "SystemView", "arguments", "command", "start_script"]

# What programs need of the host's /etc; absent ones are left out.
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_START = "/run/ate/start"
_PRIVATE_BYTES = 256 * 1024 * 1024
_WORLD_WRITABLE = ("--perms", "1777", "--size", str(_PRIVATE_BYTES), "--tmpfs")
_TO_GIVE_UP_WITH = ("CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID")


@dataclass(frozen=True)
class SystemView:
    """What the host's file system offers: see `scan`."""

    directories: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    files: tuple[str, ...]

    @classmethod
    def scan(cls) -> SystemView:
        """Looks at this host: with a merged /usr the directories at the top are links into it."""
        tops = [Path(top) for top in _TOP]
        return cls(
            directories=("/usr", *(str(t) for t in tops if t.is_dir() and not t.is_symlink())),
            links=tuple((str(t), str(t.readlink())) for t in tops if t.is_symlink()),
            files=tuple(name for name in SYSTEM_FILES if Path(name).exists()),
        )


@dataclass(frozen=True)
class Descriptors:
    """Inherited by bubblewrap: its arguments, where it reports, what it waits for, the filter."""

    arguments: int
    status: int
    gate: int
    seccomp: int | None


def command(network: Path, account: int, descriptors: Descriptors) -> list[str]:
    """What is executed on the host. It shows nothing of the template to `ps`."""
    fds = ["--args", descriptors.arguments, "--json-status-fd", descriptors.status]
    fds += ["--block-fd", descriptors.gate]
    if descriptors.seccomp is not None:
        fds += ["--seccomp", descriptors.seccomp]
    give_up = ["--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return [
        *("nsenter", f"--net={network}", "--", "bwrap"),
        *(str(word) for word in fds),
        *("--", "/usr/bin/setpriv", f"--reuid={account}", f"--regid={account}", *give_up),
        *("--", "/bin/sh", _START),
    ]


def arguments(
    plan: ContainerPlan, hostname: str, system: SystemView, etc: Mapping[str, Path], start: Path
) -> list[str]:
    """`etc`: the actor's own files by name in /etc; `start`: the script on the host."""
    return [
        *_isolation(hostname),
        *_system(system),
        *("--proc", "/proc", "--dev", "/dev"),
        *(word for place in ("/dev/shm", "/tmp", HOME) for word in (*_WORLD_WRITABLE, place)),  # noqa: S108 - inside the sandbox, private to it
        *_binds(Bind(path, f"/etc/{name}", read_only=True) for name, path in etc.items()),
        *_binds([Bind(start, _START, read_only=True), *plan.binds]),
        *("--remount-ro", "/", "--chdir", plan.working_dir),
    ]


def start_script(environment: Mapping[str, str], words: Sequence[str]) -> str:
    """Replaces itself by the command with exactly this environment."""
    pairs = (f"{name}={value}" for name, value in environment.items())
    return f"exec /usr/bin/env -i {shlex.join([*pairs, *words])}\n"


def _isolation(hostname: str) -> list[str]:
    return [
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--hostname", hostname, "--die-with-parent", "--new-session", "--clearenv"),
        *("--cap-drop", "ALL"),
        *(word for capability in _TO_GIVE_UP_WITH for word in ("--cap-add", capability)),
    ]


def _system(system: SystemView) -> list[str]:
    paths = (*system.directories, *system.files)
    return [
        *_binds(Bind(Path(path), path, read_only=True) for path in paths),
        *(word for path, target in system.links for word in ("--symlink", target, path)),
    ]


def _binds(binds: Iterable[Bind]) -> Iterator[str]:
    for bind in binds:
        # Left to itself bubblewrap would derive the parents' mode from that of the source.
        yield from ("--dir", str(PurePosixPath(bind.target).parent))
        yield from ("--ro-bind" if bind.read_only else "--bind", str(bind.source), bind.target)
