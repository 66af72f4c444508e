"""The demo from start to end: set up its own world, check each promise, leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import click

from atenet.local.demo import checks, egress, memory
from atenet.local.demo.report import Report, require
from atenet.local.demo.software import find_software
from atenet.local.demo.world import World, running_world
from atenet.local.left import left_behind

__all__ = ["run"]

_CHECKS: tuple[tuple[str, Callable[[World], str]], ...] = (
    ("a cold request wakes a sleeping actor", checks.cold),
    ("a warm request goes straight through", checks.warm),
    ("fifty requests at a sleeping actor, one resume", checks.burst),
    ("httpbin, from PyPI, answers", checks.httpbin),
    ("datasette, from PyPI, answers", checks.datasette),
    *egress.CHECKS,
    ("suspended, back on another worker, file intact", checks.another_worker),
    ("full pool: a request waits for a slot", checks.parked),
    ("full pool: the waiting budget runs out", checks.budget_runs_out),
    ("an unknown actor", checks.unknown),
    ("a malformed header", checks.malformed),
)

_NO_MEMORY = (
    "  --    not checked: what survives in memory, for there is no runsc here (`make runsc` builds it;"
    " `ate doctor` says more)"
)


def run(*, dataplane: str, keep: bool) -> int:
    """Prints the report; returns 0 when every promise was kept, else 1. Raises AteError."""
    software = find_software()
    click.echo(f"starting a system of two workers with two slots each, on {dataplane} ...")
    report = Report()
    with running_world(software, dataplane=dataplane, keep=keep) as world:
        report.check("the system is up", lambda: f"{world.ready['ready_seconds']:.1f} s")
        for promise, look in _CHECKS:
            report.check(promise, lambda look=look: look(world))  # type: ignore[misc]
        if not world.keeps_memory:
            click.echo(_NO_MEMORY)
        for promise, look in memory.CHECKS if world.keeps_memory else ():
            report.check(promise, lambda look=look: look(world))  # type: ignore[misc]
        system = world.system
    report.check("stopped, nothing left behind", lambda: _nothing_left(left_behind(system.layout)))
    if keep:
        click.echo(f"kept: {system.layout.home}")
    return report.conclude()


def _nothing_left(found: list[str]) -> str:
    require(not found, ", ".join(found))
    return "no process, no namespace, no mount, no cgroup"
