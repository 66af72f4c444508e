"""What the node stands on, inside its namespaces: mounts over the machine's directories, links, forwarding."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.real_node.cgroups import CONTROLLERS

# The node's address, where the API server, the database, the bucket and the name server are too.
ADDRESS = "172.31.0.1"
# An origin with an address that the egress gateway takes for public; this network reaches nothing else.
ORIGIN = "93.184.216.34"
# Where a cluster's name server is on each node, if it has one there.
NAMES = "169.254.20.10"
PODS = "10.244.0.0/24"
_LINK = "node0"
# Places that kubelet, containerd and our own pods write to by absolute paths.
_OVER = ("/var/lib", "/var/log")


def run(*words: str) -> str:
    """Its output. Raises with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr}")
    return done.stdout


def lay(state: Path) -> None:
    """Called once, as the first process of new mount, network, pid, uts, ipc and cgroup namespaces."""
    run("hostname", "node-1")
    _mounts(state)
    _network()


def _mounts(state: Path) -> None:
    run("mount", "--make-rprivate", "/")
    # The machine's own view of the groups would only confuse whoever looks for a mount.
    run("umount", "--recursive", "--lazy", "/sys/fs/cgroup")
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    _cgroups()
    run("mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for path in _OVER:
        inner = state / path.strip("/").replace("/", "-")
        inner.mkdir()
        run("mount", "--bind", str(inner), path)
    # Volumes are told to pods that began before them: by propagation, which stays in this namespace.
    run("mount", "--make-rshared", "/")


def _cgroups() -> None:
    root = Path("/sys/fs/cgroup")
    if not Path("/proc/self/cgroup").read_text().startswith("0::"):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "cgroup", str(root))
        for name in CONTROLLERS:
            (root / name).mkdir()
            kind, options = {
                "systemd": ("cgroup", "none,name=systemd"),
                "unified": ("cgroup2", "rw"),
            }.get(name, ("cgroup", name))
            run("mount", "-t", kind, "-o", options, "cgroup", str(root / name))
    else:
        run("mount", "-t", "cgroup2", "cgroup", str(root))


def _network() -> None:
    ip = shutil.which("ip") or "ip"
    run(ip, "link", "set", "lo", "up")
    # Not every kernel has links of type dummy; the other end of this one has nobody at it.
    run(ip, "link", "add", _LINK, "type", "veth", "peer", "name", f"{_LINK}-end")
    run(ip, "link", "set", f"{_LINK}-end", "up")
    for address in (f"{ADDRESS}/24", f"{ORIGIN}/32", f"{NAMES}/32"):
        run(ip, "address", "add", address, "dev", _LINK)
    run(ip, "link", "set", _LINK, "up")
    # What goes to a Service needs a way before kube-proxy says where it really goes.
    run(ip, "route", "add", "default", "dev", _LINK)
    for key in ("ip_forward", "conf/all/rp_filter"):
        Path(f"/proc/sys/net/ipv4/{key}").write_text("0" if key.endswith("filter") else "1")
