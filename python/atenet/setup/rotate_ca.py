"""`ate-setup rotate-ca`: new authorities in place of old ones, while everything runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import click

from atenet.cli.failure import BadInput
from atenet.controller.signing import names
from atenet.controller.signing.rotation import PACES, Action, Pace, Stage, Step
from atenet.errors import AteError
from atenet.flags import seconds
from atenet.setup.cluster import Cluster, cluster_options

__all__ = ["rotate_ca"]

_TOLD = {
    Action.PREPARE: "made a successor",
    Action.PUBLISH: "put it into the bundle",
    Action.NOTE: "it is in every namespace's bundle",
    Action.SWITCH: "it signs from now on",
    Action.RETIRE: "the old authority is trusted no more",
}


@click.command("rotate-ca")
@cluster_options
@click.argument("authority", required=False)
@click.option("--all", "every", is_flag=True, help="All four authorities, beside each other.")
@click.option(
    "--status", is_flag=True, help="Show how far a rotation is, and begin or go on with none."
)
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Until it is over. What is left to do is done by whoever runs this again; of pod-identity and "
    "service-dns, by ate-controller.",
)
@click.option(
    "--propagation",
    type=seconds,
    default=None,
    show_default="3m, interception 24h",
    help="How long until every process has read a bundle that changed.",
)
@click.option(
    "--leaf-life",
    type=seconds,
    default=None,
    show_default="24h, actor-identity 1h, interception 15m",
    help="How long what the old authority signed may live on.",
)
def rotate_ca(
    cluster: Cluster,
    authority: str | None,
    every: bool,
    status: bool,
    wait: bool,
    propagation: float | None,
    leaf_life: float | None,
) -> None:
    """Rotate a certificate authority while everything runs.

    AUTHORITY is pod-identity, service-dns, actor-identity or interception. The successor is trusted
    everywhere before it signs, and the old one until what it signed is renewed. It is safe to stop this at
    any time and to run it again: it goes on where it was.
    """
    chosen = _chosen(authority, every or (status and authority is None))
    paces = {name: _pace(name, propagation, leaf_life) for name in chosen}
    asyncio.run(_run(cluster, paces, status=status, wait=wait))


def _chosen(authority: str | None, every: bool) -> tuple[str, ...]:
    if every == (authority is not None):
        raise BadInput("name one authority, or --all", hint=", ".join(names.ALL_AUTHORITIES))
    if authority is None:
        return names.ALL_AUTHORITIES
    try:
        names.check_authority_name(authority)
    except AteError as error:
        raise BadInput(error.message, hint=error.hint) from error
    return (authority,)


def _pace(name: str, propagation: float | None, leaf: float | None) -> Pace:
    pace = PACES[name]
    if propagation is not None:
        pace = replace(pace, propagation=timedelta(seconds=propagation))
    return pace if leaf is None else replace(pace, leaf=timedelta(seconds=leaf))


async def _run(cluster: Cluster, paces: dict[str, Pace], *, status: bool, wait: bool) -> None:
    from atenet.controller.signing.cluster import UNREACHABLE
    from atenet.controller.signing.keeper import Keeper
    from atenet.controller.signing.rotate import Rotator, rotate
    from atenet.controller.signing.trust import Trust

    client = cluster.async_client()
    try:
        if status:
            rotator = Rotator(Keeper(client), Trust(client))
            for name, pace in paces.items():
                click.echo(f"{name}: {_standing(await rotator.look(name, pace=pace))}")
            return
        tellers = {name: _Teller(name) for name in paces}
        over = await asyncio.gather(
            *(
                rotate(client, name, pace=pace, report=tellers[name].tell, wait=wait)
                for name, pace in paces.items()
            )
        )
        for name, last in zip(paces, over, strict=True):
            click.echo(f"{name}: {'rotated' if last.stage is Stage.REST else _standing(last)}")
    except UNREACHABLE as error:
        raise AteError(
            f"{cluster.server}: {error}",
            hint="what was done so far is kept: run the same command again",
        ) from error
    finally:
        await client.close()


class _Teller:
    """Tells each step once, and each wait once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said = ""

    def tell(self, step: Step) -> None:
        text = _TOLD.get(step.action) or (_standing(step) if step.waiting_for else "")
        if text and text != self._said:
            click.echo(f"{self._name}: {text}", err=True)
            self._said = text


def _standing(step: Step) -> str:
    """How far it is, on one line."""
    if step.stage is Stage.REST:
        return "at rest"
    waiting = step.waiting_for or "the next step"
    return f"{step.stage.value}, waits for {waiting}{_until(step.until)}"


def _until(moment: datetime | None) -> str:
    return "" if moment is None else f", until {moment:%Y-%m-%d %H:%M:%S} UTC at most"
