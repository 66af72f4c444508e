"""The check itself, as the second process of the node's namespaces. Prints what it saw; exit code 1: not all is so."""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from atenet.local.demo.report import Report

from tests.real_node import given, ground, images, pods, setup
from tests.real_node.cluster import Cluster, cluster, start_node, until
from tests.real_node.memory import Memory
from tests.real_node.policies import Enforcer
from tests.real_node.story import Story

OF_NODE = (Path("/var/lib/ate"), Path("/run/ate/node"))


class _Origin(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"hello from the origin"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Quiet."""


class _Stop(Exception):
    """What follows cannot be so either."""


def main(
    state: Path,
    programs: Path,
    kube_node: Path,
    runsc: Path,
    dataplanes: list[str],
    *,
    hold: bool,
    built: Path | None,
    gvisor: bool,
) -> int:
    """`built`: the archive of a builder's images; without one they are put together here.
    `gvisor`: they must have runsc."""
    report = Report()
    ground.lay(state)
    origin = ThreadingHTTPServer((ground.ORIGIN, 80), _Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    try:
        began = time.monotonic()
        with cluster(state, programs, kube_node) as made:
            print(f"  control plane and containerd started  [{time.monotonic() - began:.1f} s]")
            _node(report, made, state, runsc, built)
            remembers = _remembers(report, made, must=gvisor)
            with Enforcer(made):
                try:
                    _path(report, made, state, dataplanes, gvisor=remembers)
                except _Stop:
                    _held(made, hold)
                    raise
    except _Stop:
        print("  what comes after that was not tried")
    return report.conclude()


def _must(report: Report, promise: str, look: object) -> None:
    assert callable(look)
    failed = len(report.failed)
    report.check(promise, look)
    sys.stdout.flush()
    if len(report.failed) > failed:
        raise _Stop


def _node(report: Report, made: Cluster, state: Path, runsc: Path, built: Path | None) -> None:
    def imported() -> str:
        target = state / "given.tar"
        ours = given.renamed(built, target) if built else images.archive(state, runsc)
        for each in (ours, images.pause(state)):
            made.node.import_images(each)
        return f"{len(made.node.ctr('images', 'ls', '-q').split())} names"

    def ready() -> str:
        start_node(made)
        return "kubelet, containerd, kube-proxy"

    _must(report, "images are imported", imported)
    _must(report, "the node is Ready", ready)
    _must(report, "a pod runs and goes", lambda: pods.first(made))


def _remembers(report: Report, made: Cluster, *, must: bool) -> bool:
    """Whether workers of the gvisor class can be tried: they need runsc."""
    there = made.node.image_has(images.reference("ateworker"), images.RUNSC)
    if must and not there:

        def lacking() -> str:
            raise AssertionError("ateworker has no runsc: `make images GVISOR=yes`")

        _must(report, "images have runsc", lacking)
    if not there:
        print("  the gvisor class is not tried: ateworker has no runsc (`make images GVISOR=yes`)")
    return there


def _path(
    report: Report, made: Cluster, state: Path, dataplanes: list[str], *, gvisor: bool
) -> None:
    owner = pods.Client(made, "people", "owner")
    friend = pods.Client(made, "web", "frontend")
    stranger = pods.Client(made, "web", "stranger")
    story = Story(made, owner, friend, stranger)
    memory = Memory(story)
    setup.prepare(made, state, owner, friend, gvisor=gvisor)
    for number, dataplane in enumerate(dataplanes):
        command = "upgrade" if number else "install"

        def install(command: str = command, dataplane: str = dataplane) -> str:
            return setup.ate_setup(made, state, command, f"--atenet-dataplane={dataplane}")

        _must(report, f"ate-setup {command}, {dataplane}", install)
        _must(report, "all pods run", lambda: setup.running(made))
        if not number:
            _first_time(report, story, workers=4 if gvisor else 2)
        _every_time(report, story, dataplane, number)
        if gvisor:
            (_memory_goes_on if number else _memory)(report, memory)
    removed = ("uninstall", "--yes", "--purge-nodes")
    _must(report, "ate-setup uninstall", lambda: setup.ate_setup(made, state, *removed))
    report.check("no pod of it is left", lambda: _gone(made))
    report.check("nor anything of it on the node", _emptied)


def _first_time(report: Report, story: Story, *, workers: int) -> None:
    def clients() -> str:
        for each in (story.owner, story.friend, story.stranger):
            each.start()
        return "each signed for its own account"

    _must(report, "clients' pods have certificates", clients)
    _must(report, "workers register", lambda: story.workers(workers))
    _must(report, "an actor is made", story.make_actor)


def _every_time(report: Report, story: Story, dataplane: str, number: int) -> None:
    base = 3 * number
    _must(report, "a request wakes the actor", lambda: story.wake(base + 1))
    report.check("its limits are below its pod's", story.limits)
    _must(report, "it is suspended", story.suspend)
    _must(report, "another request wakes it again", lambda: story.wake(base + 2))
    if dataplane == "envoy":
        report.check("a client off the list is refused", story.strangers_are_refused)
    report.check("NetworkPolicies hold", story.policies_hold)
    if not number:
        report.check("without a policy it reaches nothing", story.nothing_is_reached)
        _must(report, "a policy is given", lambda: story.allow("origin.example"))
    report.check("the origin of a rule answers", story.origin_is_reached)
    report.check("what no rule names is denied", story.others_are_denied)
    report.check("the control plane tells of it", story.denials_are_told)
    report.check("a worker is drained and replaced", story.drained)
    report.check("the actor wakes on another worker", lambda: story.wake(base + 3))
    report.check("it sleeps again", story.suspend)


def _memory(report: Report, memory: Memory) -> None:
    """Once: a class of sandboxes knows of no dataplane, which is behind the same tunnels."""
    one = memory.one
    _must(report, "actors with memory are made", memory.made)
    _must(report, "gvisor: a request starts one", memory.starts)
    report.check("gvisor: its limits are below its pod's", memory.limits)
    _must(report, "gvisor: it is suspended", one.suspend)
    _must(report, "gvisor: its memory goes on", lambda: memory.goes_on("SUSPENDED"))
    report.check("gvisor: another begins as the first did", memory.another_begins)
    report.check("gvisor: NetworkPolicies hold", memory.policies_hold)
    report.check("gvisor: without a policy it reaches nothing", one.nothing_is_reached)
    _must(report, "gvisor: a policy is given", lambda: one.allow("origin.example"))
    report.check("gvisor: the origin of a rule answers", one.origin_is_reached)
    report.check("gvisor: what no rule names is denied", one.others_are_denied)
    report.check("gvisor: it is paused", memory.paused)
    report.check("gvisor: it goes on from the node", lambda: memory.goes_on("PAUSED"))
    report.check("gvisor: its worker is drained and replaced", one.drained)
    report.check("gvisor: its memory goes on elsewhere", lambda: memory.goes_on("SUSPENDED"))


def _memory_goes_on(report: Report, memory: Memory) -> None:
    """It was awake all the while, and stays so: the uninstall has to put it to sleep."""
    report.check("gvisor: one that was awake counts on", lambda: memory.goes_on("RUNNING"))
    report.check("gvisor: and reaches its origin", memory.one.origin_is_reached)


def _held(made: Cluster, hold: bool) -> None:
    """For whoever wants to look around."""
    if hold:
        print(f"  held; kubeconfig: {made.kube.admin_kubeconfig}")
        print("  `nsenter --all` of the process `tests.real_node.inside` goes there; SIGTERM to")
        print("  `tests.real_node` ends it", flush=True)
        threading.Event().wait()


def _gone(made: Cluster) -> str:
    """Routers and gateways drain first, as long as their grace allows."""

    def left() -> list[str]:
        pods_left = made.pods("ate-system") + made.pods("ate-workers")
        return [each["metadata"]["name"] for each in pods_left]

    until("all pods go", lambda: not left(), 90, lambda: f"left: {left()}")
    return "none"


def _emptied() -> str:
    left = [path for each in OF_NODE if each.exists() for path in each.iterdir()]
    assert not left, f"left: {left}"
    return " and ".join(map(str, OF_NODE))


if __name__ == "__main__":
    places, (dataplanes, hold, built, gvisor) = [Path(each) for each in sys.argv[1:5]], sys.argv[5:]
    sys.exit(
        main(
            *places,
            dataplanes.split(","),
            hold=hold == "hold",
            built=Path(built) if built else None,
            gvisor=gvisor == "must",
        )
    )
