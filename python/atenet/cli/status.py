"""`ate status`: what runs, where it serves, how it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from atenet.cli.failure import ExitCode, NotReachable
from atenet.cli.home import home_option
from atenet.cli.output import output_option, show, working
from atenet.errors import AteError
from atenet.local.system import LocalSystem

__all__ = ["status"]

_PATIENCE = 5.0  # seconds: whoever looks wants to know that nobody answers


@click.command()
@home_option
@output_option
def status(home: Path, output: str) -> int:
    """Show processes, workers and actors.

    Exit code 0 when all is well, 1 when a process is not, 4 when nothing runs.
    """
    system = LocalSystem(home)
    with working("asking the supervisor") as say:
        found = system.status()
        if found is None:
            raise _nothing_runs(system)
        say("asking the control plane")
        load = _load(home)
    well = all(process["state"] == "ready" for process in found["processes"])
    if output == "json":
        show(output, {**found, **asdict(load)}, (), ())
    else:
        _print(found, load)
    return ExitCode.DONE if well and not load.problem else ExitCode.FAILED


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


@dataclass(frozen=True)
class _Load:
    """Workers and actors as the control plane knows them; or why it could not be asked."""

    workers: list[dict[str, Any]]
    actors: dict[str, int]  # state -> how many
    problem: str | None = None


def _load(home: Path) -> _Load:
    # Late: a system that is down is told without loading gRPC.
    from atenet.cli.control import control, paged
    from atenet.proto import ateapi_pb2 as pb

    try:
        with control(home) as stub:
            workers = list(paged(stub.ListWorkers, pb.ListWorkersRequest(), "workers", _PATIENCE))
            actors = list(paged(stub.ListActors, pb.ListActorsRequest(), "actors", _PATIENCE))
    except AteError as error:
        return _Load([], {}, error.message)
    states = (pb.ActorState.Name(a.status.state).removeprefix("ACTOR_STATE_") for a in actors)
    rows = [
        {
            "name": worker.worker_pod,
            "state": pb.WorkerState.Name(worker.status.state).removeprefix("WORKER_STATE_"),
            "slots": worker.status.capacity.actors,
            "used": worker.status.allocated.actors,
            "ip": worker.ips[0] if worker.ips else "-",
        }
        for worker in sorted(workers, key=lambda worker: worker.worker_pod)
    ]
    return _Load(rows, dict(Counter(states)))


def _print(found: dict[str, Any], load: _Load) -> None:
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
    if load.problem:
        click.echo(f"workers and actors: {load.problem}")
        return
    lines = [
        (w["name"], w["state"].lower(), f"{w['used']}/{w['slots']}", w["ip"]) for w in load.workers
    ]
    show("table", None, ("WORKER", "STATE", "ACTORS", "ADDRESS"), lines)
    counts = [f"{count} {state.lower()}" for state, count in sorted(load.actors.items())]
    click.echo(f"\nactors: {', '.join(counts) or 'none'}")
