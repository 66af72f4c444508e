"""`ate up`: the whole system on this machine, in the background or in front."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from atenet.cli.home import home_option
from atenet.cli.output import working
from atenet.errors import of_system
from atenet.flags import options_for
from atenet.local.layout import Layout
from atenet.local.settings import LocalSettings
from atenet.local.system import LocalSystem

__all__ = ["up"]


_SANDBOX = {
    "gvisor": "gvisor: actors keep their memory while they sleep",
    "process": "process: actors keep files, not memory (`ate doctor` says what gvisor would need)",
}


@click.command()
@home_option
@click.option("--foreground", is_flag=True, help="Stay in front; ^C stops the system.")
@options_for(LocalSettings, variables="ATE_")
def up(settings: LocalSettings, home: Path, foreground: bool) -> None:
    """Start the whole system on this machine.

    Starts control plane, node agent, workers, router, egress gateway and credential provider, waits
    until all serve, and leaves them running. Ports may be 0 (a free one); `ate status` shows the addresses.
    """
    if foreground:
        _in_front(home, settings)
        return
    system = LocalSystem(home)
    with working("starting the system") as say:
        waiting: dict[str, str] = {}
        for event in system.start(settings):
            if event["event"] == "ready":
                ready = event
            else:
                waiting[event["name"]] = event["state"]
                left = [name for name, state in waiting.items() if state != "ready"]
                say(f"waiting for {', '.join(left)}" if left else "all serve")
    _welcome(system.layout, ready)


def _in_front(home: Path, settings: LocalSettings) -> None:
    from atenet import logs
    from atenet.local.supervisor import Supervisor

    logs.configure("supervisor", settings.log_level)

    def report(event: dict[str, Any]) -> None:
        if event["event"] == "ready":
            _welcome(Layout(home), event)

    try:
        asyncio.run(Supervisor(home, settings, report).run())
    except OSError as error:
        raise of_system(error) from error


def _welcome(layout: Layout, ready: dict[str, Any]) -> None:
    router = next(p["addresses"] for p in ready["processes"] if p["name"] == "router")
    count = sum(1 for p in ready["processes"] if p["name"].startswith("worker-"))
    workers = f"{count} worker{'s' if count != 1 else ''}"
    names = f"ateapi, atelet, router, egress gateway, {workers}"
    click.echo(f"up in {ready['ready_seconds']:.1f} s: {names}")
    plain = f"  http://{router['http']}" if "http" in router else ""
    dataplane = ready["settings"]["dataplane"]
    click.echo(f"  router  https://{router['https']}{plain}  ({dataplane})")
    click.echo(f"  sandbox {_SANDBOX[ready['settings']['sandbox']]}")
    click.echo(f"  state   {layout.home}")
    click.echo(
        "next: `ate template create -f FILE`, `ate actor create`, `ate curl`; `ate down` stops it"
    )
