"""`ateapi keys`: the keys that sign actors' tokens, in the store that all replicas share."""

from __future__ import annotations

import os
import pwd
import time
from datetime import UTC, datetime

import click

from atenet.ateapi.mint import Vault, keyring
from atenet.ateapi.mint import keys as signing_keys
from atenet.ateapi.settings import KeySettings, StoreSettings
from atenet.ateapi.store import Store
from atenet.ateapi.store_command import with_store
from atenet.errors import AteError
from atenet.flags import options_for, seconds

__all__ = ["keys"]


@click.group()
def keys() -> None:
    """The keys that sign actors' tokens. Every replica on the store works with them at once."""


@keys.command("list")
@options_for(StoreSettings)
def list_keys(settings: StoreSettings) -> None:
    """Which keys there are, and what each is for now."""

    async def show(store: Store) -> None:
        now = time.time()
        found = await store.read(lambda tx: tx.signing_keys.all())
        current, gone = keyring.signing(found, now), keyring.retired(found, now)
        for key in found:
            word = "retired" if key in gone else "published"
            state = "signs" if key is current else word
            since = datetime.fromtimestamp(key.signs_from, UTC)
            click.echo(f"{key.kid}  {state:<9}  signs from {since:%Y-%m-%d %H:%M:%S} UTC")

    with_store(settings, show)


@keys.command()
@click.option(
    "--ahead",
    type=seconds,
    default=keyring.PUBLISHED_AHEAD,
    show_default=True,
    help="How long the new key is published before it signs, in seconds or as 10m; 0: at once.",
)
@options_for(KeySettings)
def rotate(settings: KeySettings, ahead: float) -> None:
    """Makes a new key. The old one signs until the new one does, and verifies for an hour more."""

    async def turn(store: Store) -> None:
        now = time.time()
        made = await signing_keys.rotate(
            store, Vault(settings.keys_secret), now, ahead=ahead, who=_who()
        )
        click.echo(f"{made.kid} signs in {made.signs_from - now:g} s")

    with_store(settings, turn)


@keys.command()
@click.argument("kid")
@options_for(KeySettings)
def revoke(settings: KeySettings, kid: str) -> None:
    """Removes a key at once, e.g. one that was stolen. Its tokens are refused as soon as verifiers
    fetch the keys again; if it was the one that signs, a new one takes its place."""

    async def end(store: Store) -> None:
        vault = Vault(settings.keys_secret)
        if not await signing_keys.revoke(store, vault, kid, time.time(), who=_who()):
            raise AteError(f"there is no key {kid}", hint="`ateapi keys list` shows them")
        click.echo(f"{kid} is gone")

    with_store(settings, end)


def _who() -> str:
    """For the audit log: who works on the store itself has no other name."""
    try:
        return f"user/{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:
        return f"user/{os.getuid()}"
