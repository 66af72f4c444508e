"""`python -m tests.real_node`: makes the namespaces, runs the check in them, removes all that it made."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.real_node import given as images_given
from tests.real_node import images
from tests.real_node.cgroups import NodeCgroups

_TOOLS = Path(__file__).resolve().parents[2] / "tools"
_NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup")
# Of Debian; `make node` installs them.
_COMMANDS = ("etcd", "mmdebstrap", "nft", "runc", "unshare")
# Only where images are put together here.
_TOGETHER = ("mmdebstrap",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_node", description=__doc__)
    parser.add_argument("--dataplanes", default="envoy,agentgateway", help="in this order")
    parser.add_argument("--keep", action="store_true", help="leave the logs, and say where")
    parser.add_argument("--hold", action="store_true", help="at a failure, run on until Ctrl-C")
    parser.add_argument(
        "--images", type=Path, help="an archive of images that a builder made (IMAGE_ARCHIVE)"
    )
    parser.add_argument(
        "--gvisor",
        action="store_true",
        help="fail where images have no runsc, instead of saying so",
    )
    given = parser.parse_args()
    commands = [each for each in _COMMANDS if not (given.images and each in _TOGETHER)]
    missing = [each for each in commands if shutil.which(each) is None]
    if os.geteuid() != 0 or missing:
        print(f"error: root is needed, and {', '.join(missing) or 'nothing else'}", file=sys.stderr)
        print("hint: `sudo make node` installs what is missing", file=sys.stderr)
        return 2
    if given.images and (fault := _fault(given.images)):
        print(f"error: --images: {fault}", file=sys.stderr)
        print("hint: `make images IMAGE_ARCHIVE=FILE` saves all of them in FILE", file=sys.stderr)
        return 2
    try:
        built = _built()
        if not given.images:
            images.fetch()
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it cleans up then, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    state = Path(tempfile.mkdtemp(prefix="atenet-node-"))
    state.chmod(0o755)
    cgroups = NodeCgroups(state.name)
    try:
        cgroups.make()
        code = _run(cgroups, state, built, given)
    finally:
        left = cgroups.remove()
        if given.keep:
            print(f"logs: {state}")
        else:
            shutil.rmtree(state)
    if left:
        print(
            f"error: these control groups could not be removed: {' '.join(left)}", file=sys.stderr
        )
        return 1
    return code


def _fault(archive: Path) -> str | None:
    """What is wrong with it, before minutes are spent."""
    try:
        missing = images_given.missing(archive)
    except ValueError as error:
        return str(error)
    return f"{archive} lacks {', '.join(sorted(missing))}" if missing else None


def _built() -> tuple[Path, Path, Path]:
    """containerd's directory, the node's program of Kubernetes, and runsc. Raises RuntimeError."""
    sys.path.insert(0, str(_TOOLS))
    try:
        golang = importlib.import_module("golang")
        containerd = importlib.import_module("containerd")
        kubernetes = importlib.import_module("kubernetes")
        runsc = importlib.import_module("runsc")
    finally:
        sys.path.remove(str(_TOOLS))
    try:
        kubernetes.ensure()
        return containerd.ensure(), kubernetes.ensure_node(), runsc.ensure()
    except golang.GoError as error:
        raise RuntimeError(str(error)) from error


def _run(
    cgroups: NodeCgroups, state: Path, built: tuple[Path, Path, Path], given: argparse.Namespace
) -> int:
    """The first process is a shell, which reaps what others leave behind; with it everything ends."""
    inside = [sys.executable, "-m", "tests.real_node.inside", str(state), *map(str, built)]
    archive = str(given.images.resolve()) if given.images else ""
    hold, gvisor = "hold" if given.hold else "go", "must" if given.gvisor else "may"
    how = (given.dataplanes, hold, archive, gvisor)
    command = [
        *("unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", '"$@"; exit $?', "sh", *inside, *how),
    ]
    environment = {**os.environ, "TMPDIR": str(state)}  # what is killed leaves files
    process = subprocess.Popen(
        command, preexec_fn=cgroups.enter, cwd=_TOOLS.parent, env=environment
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.kill()  # and by that the first process of its namespaces
        process.wait()
        return 130


if __name__ == "__main__":
    sys.exit(main())
