"""`ate status`: what runs, where it serves, how it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from atenet.cli.failure import ExitCode, NotReachable
from atenet.cli.home import home_option
from atenet.cli.output import output_option, show
from atenet.errors import AteError
from atenet.local.system import LocalSystem

__all__ = ["status"]


@click.command()
@home_option
@output_option
def status(home: Path, output: str) -> int:
    """Show processes, workers and actors.

    Exit code 0 when all is well, 1 when a process is not, 4 when nothing runs.
    """
    system = LocalSystem(home)
    found = system.status()
    if found is None:
        raise _nothing_runs(system)
    workers, problem = _workers(home)
    well = all(process["state"] == "ready" for process in found["processes"])
    if output == "json":
        show(output, {**found, "workers": workers, "problem": problem}, (), ())
    else:
        _print(found, workers, problem)
    return ExitCode.DONE if well and not problem else ExitCode.FAILED


def _nothing_runs(system: LocalSystem) -> AteError:
    try:
        crashed = system.record() is not None
    except (AteError, OSError):
        crashed = True
    if crashed:
        return NotReachable(
            f"the supervisor of {system.layout.home} is gone, it did not stop in order",
            hint="`ate down` cleans up, `ate up` starts anew; no actor is lost",
        )
    return NotReachable(
        f"nothing is running on {system.layout.home}", hint="start it with `ate up`"
    )


def _workers(home: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Each worker with its slots and actors, as the control plane knows them; or why not."""
    from atenet.cli.control import DEADLINE_SECONDS, control, paged
    from atenet.proto import ateapi_pb2 as pb

    try:
        with control(home) as stub:
            workers = list(paged(stub.ListWorkers, pb.ListWorkersRequest(), "workers"))
            request = pb.ListActorsRequest()
            states = Counter(
                (a.status.worker_assignment.worker_pod, a.status.state)
                for a in paged(stub.ListActors, request, "actors")
            )
    except AteError as error:
        return [], f"{error.message} (waited up to {DEADLINE_SECONDS:g} s)"
    rows: list[dict[str, Any]] = [
        {
            "name": worker.worker_pod,
            "state": pb.WorkerState.Name(worker.status.state).removeprefix("WORKER_STATE_"),
            "slots": worker.status.capacity.actors,
            "used": worker.status.allocated.actors,
            "ip": worker.ips[0] if worker.ips else "-",
        }
        for worker in workers
    ]
    asleep = sum(n for (pod, _), n in states.items() if not pod)
    return [*rows, {"name": "(no worker)", "used": asleep}], None


def _print(found: dict[str, Any], workers: list[dict[str, Any]], problem: str | None) -> None:
    click.echo(f"{found['home']}, since {found['since']}\n")
    rows = [
        (
            process["name"],
            process["state"],
            str(process["pid"] or "-"),
            str(process["restarts"]),
            "  ".join(f"{what} {where}" for what, where in process["addresses"].items()),
        )
        for process in found["processes"]
    ]
    show("table", None, ("PROCESS", "STATE", "PID", "RESTARTS", "ADDRESSES"), rows)
    click.echo()
    if problem:
        click.echo(f"workers and actors: {problem}")
        return
    *hosts, asleep = workers
    lines = [
        (w["name"], w["state"].lower(), f"{w['used']}/{w['slots']}", w["ip"])
        for w in sorted(hosts, key=lambda w: str(w["name"]))
    ]
    show("table", None, ("WORKER", "STATE", "ACTORS", "ADDRESS"), lines)
    click.echo(f"\nactors on no worker: {asleep['used']}")
