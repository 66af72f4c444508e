"""What a local system needs of this machine, looked at one by one."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.gvisor import OLDEST, find_runsc, version_of
from atenet.local.preflight import check_machine, search_path

__all__ = ["Finding", "examine", "judge_inotify"]

_CGROUPS = Path("/sys/fs/cgroup")
_SECONDS = 10.0
_INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
_INOTIFY_OF_ENVOYS = 2 * 5


@dataclass(frozen=True)
class Finding:
    """`state`: ok; missing (nothing runs without it); optional (something does not)."""

    what: str
    state: str
    found: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> list[Finding]:
    """Everything, in the order of need. Blocks for some ms; changes nothing."""
    return [look() for look in _LOOKS]


def _rights() -> Finding:
    try:
        check_machine()
    except AteError as e:
        return Finding("rights", "missing", e.message, e.hint)
    return Finding("rights", "ok", f"Linux {platform.release()}, enough for namespaces and mounts")


def _namespaces() -> Finding:
    if not Path("/proc/self/ns/net").exists():
        return Finding("namespaces", "missing", "the kernel has no network namespaces")
    if shutil.which("ip", path=search_path()) is None:
        return Finding(
            "namespaces", "missing", "the command `ip` is missing", "apt-get install iproute2"
        )
    return Finding("namespaces", "ok", "network namespaces and links")


def _nftables() -> Finding:
    nft = shutil.which("nft", path=search_path())
    if nft is None:
        return Finding(
            "nftables", "missing", "the command `nft` is missing", "apt-get install nftables"
        )
    asked = _run([nft, "-c", "-f", "-"], "table ip atenet_doctor { }\n")
    if asked is None or asked.returncode:
        why = "" if asked is None else " ".join(asked.stderr.split())
        return Finding(
            "nftables",
            "missing",
            f"rules cannot be loaded: {why}",
            "a kernel with nf_tables, and root",
        )
    return Finding("nftables", "ok", "rules can be loaded")


def _cgroups() -> Finding:
    separate = (_CGROUPS / "memory").is_dir()
    place = _CGROUPS / "memory" if separate else _CGROUPS
    kind = "version 1" if separate else "version 2"
    if not (place / "cgroup.procs").exists():
        return Finding(
            "cgroups",
            "optional",
            "not mounted: templates with limits do not start",
            "mount cgroup2",
        )
    if not os.access(place, os.W_OK):
        return Finding(
            "cgroups",
            "optional",
            f"{kind}, not writable: templates with limits do not start",
            "run as root, outside a container without cgroup rights",
        )
    return Finding("cgroups", "ok", f"{kind}: limits of memory and cpu, pauses")


def _runsc() -> Finding:
    program = find_runsc()
    if program is not None:
        said = version_of(program)
        return Finding("runsc", "ok", f"{program} ({said}): actors keep their memory")
    go = shutil.which("go", path=os.pathsep.join([search_path(), "/usr/local/go/bin"]))
    hint = "make runsc" if go else "install Go 1.26 or newer, then `make runsc`"
    return Finding(
        "runsc",
        "optional",
        f"none of release {OLDEST} or later: actors keep files, not memory",
        f"{hint}; or put gVisor's runsc on PATH",
    )


def _envoy() -> Finding:
    from atenet.router.binary import find_envoy

    try:
        found = find_envoy(None)
    except AteError as e:
        return Finding("envoy", "optional", e.message, "or use --dataplane agentgateway")
    return Finding("envoy", "ok", str(found))


def _inotify() -> Finding:
    try:
        limit = int(_INOTIFY_LIMIT.read_text())
    except (OSError, ValueError):
        return Finding("inotify", "ok", "no limit of instances is known here")
    return judge_inotify(limit, _inotify_taken())


def judge_inotify(limit: int, taken: int) -> Finding:
    """Whether this user has instances left for the Envoys of a local system. `taken`: those in use."""
    said = f"{taken} of {limit} instances of this user are taken"
    if limit - taken >= _INOTIFY_OF_ENVOYS:
        return Finding("inotify", "ok", said)
    return Finding(
        "inotify",
        "optional",
        f"{said}: router and egress gateway on Envoy want {_INOTIFY_OF_ENVOYS} and abort (signal 6) without",
        f"sysctl fs.inotify.max_user_instances={max(1024, 2 * limit)}, or --dataplane agentgateway",
    )


def _inotify_taken() -> int:
    """By processes of this user, as far as they can be looked at."""
    taken = 0
    for process in Path("/proc").glob("[0-9]*"):
        # It may end, or be nobody's business, while it is looked at.
        with suppress(OSError):
            if process.stat().st_uid == os.geteuid():
                taken += sum(map(_is_inotify, (process / "fd").iterdir()))
    return taken


def _is_inotify(file: Path) -> bool:
    try:
        return str(file.readlink()) == "anon_inode:inotify"
    except OSError:
        return False


def _postgresql() -> Finding:
    import psycopg

    version = psycopg.pq.version()
    said = f"client library {version // 10000}.{version % 100}; a local system uses SQLite"
    return Finding("postgresql", "ok", said)


def _run(command: list[str], text: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


_LOOKS: tuple[Callable[[], Finding], ...] = (
    _rights,
    _namespaces,
    _nftables,
    _cgroups,
    _runsc,
    _envoy,
    _inotify,
    _postgresql,
)
