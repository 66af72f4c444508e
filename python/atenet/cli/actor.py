"""`ate actor ...`"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path

import click
import grpc
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, asking, paged
from atenet.cli.failure import BadInput
from atenet.cli.home import home_option
from atenet.cli.output import age, output_option, show
from atenet.cli.refs import NAME, REF
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb
from atenet.proto.ateapi_pb2_grpc import ControlStub

# A revert may read whole snapshots.
REVERT_SECONDS = 600.0

__all__ = ["actor"]


@click.group()
def actor() -> None:
    """Create, look at, suspend, pause and resume actors."""


@actor.command()
@click.argument("actor", type=REF)
@click.option("-t", "--template", required=True, help="Template: <name> or <atespace>/<name>.")
@click.option(
    "-l", "--selector", multiple=True, metavar="KEY=VALUE", help="Only on workers with this label."
)
@home_option
@output_option
def create(
    actor: pb.ObjectRef, template: str, selector: tuple[str, ...], home: Path, output: str
) -> None:
    """Create an actor. It sleeps until a request names it."""
    source = template if "/" in template else f"{actor.atespace}/{template}"
    try:
        wanted_template = REF.convert(source, None, None)
    except click.BadParameter as error:
        raise BadInput(f"--template: {error.message}", hint="`ate template list`") from error
    wanted = pb.Actor(
        metadata=pb.ResourceMetadata(atespace=actor.atespace, name=actor.name),
        actor_template=wanted_template,
        worker_selector=pb.Selector(match_labels=dict(map(_label, selector))),
    )
    first = "`ate atespace list` and `ate template list` show what there is"
    with asking(home, refused=first) as stub:
        made = stub.CreateActor(pb.CreateActorRequest(actor=wanted), timeout=DEADLINE_SECONDS)
    if output == "json":
        _show(output, [made])
    else:
        click.echo(f"actor {_name(actor)} created, {_state(made).lower()}")


@actor.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def get(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Show one actor."""
    with asking(home) as stub:
        found = stub.GetActor(pb.GetActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
    _show(output, [found])
    if output == "table" and found.status.crash.message:
        click.echo(f"crashed: {found.status.crash.message}")


@actor.command("list")
@click.argument("atespace", type=NAME, required=False, default=None)
@home_option
@output_option
def list_(atespace: str | None, home: Path, output: str) -> None:
    """List actors: all, or one atespace's."""
    request = pb.ListActorsRequest(atespace=atespace or "")
    with asking(home) as stub:
        found = list(paged(stub.ListActors, request, "actors"))
    _show(output, found, many=True)


@actor.command()
@click.argument("actor", type=REF)
@click.option("--force", is_flag=True, help="Also when it is running.")
@home_option
def delete(actor: pb.ObjectRef, force: bool, home: Path) -> None:
    """Delete an actor and its snapshots."""
    request = pb.DeleteActorRequest(actor=actor, any_state=force)
    awake = f"`ate actor suspend {_name(actor)}`, or --force"
    with asking(home, f"deleting {_name(actor)}", refused=awake) as stub:
        stub.DeleteActor(request, timeout=DEADLINE_SECONDS)
    click.echo(f"actor {_name(actor)} deleted")


@actor.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def suspend(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Put an actor to sleep: its files are kept, its worker's slot is free."""
    with asking(home, f"suspending {_name(actor)}") as stub:
        began = time.monotonic()
        request = pb.SuspendActorRequest(actor=actor)
        now = stub.SuspendActor(request, timeout=DEADLINE_SECONDS).actor
    _report(output, now, began)


@actor.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def pause(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Freeze an actor where it is: it keeps its memory and its worker's slot."""
    with asking(home, f"pausing {_name(actor)}") as stub:
        began = time.monotonic()
        request = pb.PauseActorRequest(actor=actor)
        now = stub.PauseActor(request, timeout=DEADLINE_SECONDS).actor
    _report(output, now, began)


@actor.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def revert(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Go back to the last snapshot: what the actor did since, or crashed of, is forgotten.

    When the last one is what it could not start from: to the last that verifies, and says which.
    """
    with asking(home, f"reverting {_name(actor)}") as stub:
        began = time.monotonic()
        request = pb.RevertActorRequest(actor=actor)
        answer = stub.RevertActor(request, timeout=REVERT_SECONDS)
    if answer.note and output != "json":
        click.echo(answer.note, err=True)
    _report(output, answer.actor, began)


@actor.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def resume(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Wake an actor, suspended or paused, as a request would."""
    with asking(home, f"resuming {_name(actor)}") as stub:
        began = time.monotonic()
        request = pb.ResumeActorRequest(actor=actor)
        try:
            now = stub.ResumeActor(request, timeout=DEADLINE_SECONDS).actor
        except grpc.RpcError:
            _raise_crash(stub, actor)
            raise
    _report(output, now, began)


def _raise_crash(stub: ControlStub, actor: pb.ObjectRef) -> None:
    """The control plane tells routers only that a start failed; the actor's record says why."""
    found = stub.GetActor(pb.GetActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
    if found.status.state == pb.ACTOR_STATE_CRASHED:
        why, _, hint = found.status.crash.message.partition("\nhint: ")
        logs = f"`ate logs {_name(actor)}` shows what it printed"
        raise AteError(f"actor {_name(actor)} has crashed: {why}", hint=hint or logs)


def _report(output: str, now: pb.Actor, began: float) -> None:
    if output == "json":
        _show(output, [now])
        return
    worker = _worker(now)
    where = f" on {worker}" if worker != "-" else ""
    took = (time.monotonic() - began) * 1000
    click.echo(f"actor {_name(now.metadata)} is {_state(now).lower()}{where} ({took:.0f} ms)")


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise BadInput(f"--selector: {text!r} is not KEY=VALUE", hint="e.g. --selector zone=a")
    return key, value


def _name(ref: pb.ObjectRef | pb.ResourceMetadata) -> str:
    return f"{ref.atespace}/{ref.name}"


def _state(found: pb.Actor) -> str:
    return pb.ActorState.Name(found.status.state).removeprefix("ACTOR_STATE_")


def _worker(found: pb.Actor) -> str:
    return found.status.worker_assignment.worker_pod or "-"


def _show(output: str, found: Iterable[pb.Actor], *, many: bool = False) -> None:
    items = list(found)
    data = [MessageToDict(item) for item in items]
    rows = [
        (
            item.metadata.atespace,
            item.metadata.name,
            _state(item),
            _worker(item),
            _name(item.actor_template),
            age(item.metadata.create_time.ToDatetime(tzinfo=UTC)),
        )
        for item in items
    ]
    columns = ("ATESPACE", "NAME", "STATE", "WORKER", "TEMPLATE", "AGE")
    show(output, data if many else data[0], columns, rows)
