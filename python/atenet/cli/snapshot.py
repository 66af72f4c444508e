"""`ate snapshot ...`: what sleeping actors are kept in."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from atenet.cli.control import asking, paged
from atenet.cli.home import home_option, running
from atenet.cli.output import age, output_option, show, working
from atenet.errors import AteError
from atenet.flags import seconds
from atenet.proto import ateapi_pb2 as pb

__all__ = ["snapshot"]


@click.group()
def snapshot() -> None:
    """List, verify and collect snapshots.

    Where they are in an s3:// bucket, its credentials are AWS_… variables here too.
    """


@snapshot.command("list")
@home_option
@output_option
def list_(home: Path, output: str) -> None:
    """List what the store holds, and whose it is.

    A snapshot that nobody's record names is `unreferenced`; one without its manifest, `incomplete`.
    """
    listed = list(_inventory(home).look())
    owners = _named(home)
    data = [
        {
            "uri": each.uri,
            "bytes": each.size,
            "actor": owners.get(each.uri, ""),
            "state": _state(each, owners),
            "modified": datetime.fromtimestamp(each.modified, UTC).isoformat(),
        }
        for each in listed
    ]
    rows = [
        (
            owners.get(each.uri) or "-",
            _state(each, owners),
            f"{each.size / 1e6:.1f} MB",
            age(datetime.fromtimestamp(each.modified, UTC)),
            each.key,
        )
        for each in listed
    ]
    show(output, data, ("ACTOR", "STATE", "SIZE", "AGE", "KEY"), rows)


@snapshot.command()
@click.argument("actor", required=False)
@home_option
@output_option
def verify(home: Path, output: str, actor: str | None) -> None:
    """Read snapshots from end to end and compare their checksums.

    All that records name, or the one of ACTOR (atespace/name). Exit code 1 when one is damaged.
    """
    from atenet.atelet.snapshot import SnapshotStore

    store = SnapshotStore(_objects(home))
    wanted = {uri: who for uri, who in _named(home).items() if actor in (None, who)}
    data: list[dict[str, Any]] = []
    with working("verifying") as say:
        for uri, who in sorted(wanted.items(), key=lambda item: item[1]):
            say(f"verifying {who}")
            try:
                store.verify(uri)
            except (AteError, OSError) as e:
                data.append({"actor": who, "uri": uri, "state": "damaged", "reason": str(e)})
            else:
                data.append({"actor": who, "uri": uri, "state": "good", "reason": ""})
    rows = [
        (d["actor"], d["state"], d["reason"].splitlines()[0] if d["reason"] else "") for d in data
    ]
    show(output, data, ("ACTOR", "STATE", "REASON"), rows)
    if any(d["state"] == "damaged" for d in data):
        raise SystemExit(1)


@snapshot.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--older-than",
    type=seconds,
    default="1h",
    show_default=True,
    help="Leave alone what was written later, e.g. 90s, 15m, 2h.",
)
@home_option
@output_option
def gc(home: Path, output: str, dry_run: bool, older_than: float) -> None:
    """Remove what no record names: left by a store restored from a backup, say.

    The control plane removes replaced snapshots by itself.
    """
    before = time.time() - older_than
    inventory = _inventory(home)
    # In this order: what is stored has been named before.
    listed = list(inventory.look())
    gone = inventory.collect(listed, _named(home).keys(), before=before, remove=not dry_run)
    data = [{"uri": each.uri, "bytes": each.size, "complete": each.complete} for each in gone]
    if output == "json":
        show(output, data, (), ())
        return
    total = sum(each.size for each in gone) / 1e6
    verb = "would remove" if dry_run else "removed"
    for each in gone:
        click.echo(each.key)
    click.echo(f"{verb} {len(gone)} snapshots, {total:.1f} MB")


def _objects(home: Path) -> Any:
    from atenet.snapshots import open_objects

    layout, record = running(home)
    return open_objects(record["settings"].get("snapshots") or str(layout.snapshots))


def _inventory(home: Path) -> Any:
    from atenet.atelet.snapshot.inventory import Inventory

    return Inventory(_objects(home))


def _named(home: Path) -> dict[str, str]:
    """URI to atespace/name, of every snapshot that a record names."""
    named: dict[str, str] = {}
    with asking(home) as stub:
        for actor in paged(stub.ListActors, pb.ListActorsRequest(), "actors"):
            who = f"{actor.metadata.atespace}/{actor.metadata.name}"
            status = actor.status
            for uri in (
                status.external_snapshot.snapshot_uri,
                status.previous_snapshot.snapshot_uri,
                status.in_progress_snapshot_uri,
            ):
                if uri:
                    named[uri] = who
    return named


def _state(each: Any, owners: dict[str, str]) -> str:
    if not each.complete:
        return "incomplete"
    return "referenced" if each.uri in owners else "unreferenced"
