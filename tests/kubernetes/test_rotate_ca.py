"""`ate-setup rotate-ca` as a person runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.keeper import Keeper
from lightkube import AsyncClient

from tests.kubernetes.setup_command import Setup
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_identity import SYSTEM, prepare, signing

FAST = ("--propagation", "1s", "--leaf-life", "1s")


@pytest.fixture
async def client(async_admin: AsyncClient) -> AsyncIterator[AsyncClient]:
    await prepare(async_admin)
    async with signing(async_admin):
        yield async_admin


@pytest.fixture
def setup(kube: KubeCluster, tmp_path: Path) -> Setup:
    return Setup(kube, tmp_path)


async def test_it_rotates_all_of_them_and_says_each_step(setup: Setup, client: AsyncClient) -> None:
    before = await Keeper(client, SYSTEM).bundles()
    done = await setup.ok("rotate-ca", "--all", *FAST)
    after = await Keeper(client, SYSTEM).bundles()
    for name in names.ALL_AUTHORITIES:
        assert not set(before[name]) & set(after[name])
        assert f"{name}: rotated" in done.out
        assert f"{name}: it signs from now on" in done.err
    assert "PRIVATE" not in done.out + done.err


async def test_one_that_does_not_wait_is_gone_on_with_by_the_next(
    setup: Setup, client: AsyncClient
) -> None:
    name = names.ACTOR_IDENTITY
    (before,) = (await Keeper(client, SYSTEM).bundles())[name]
    begun = await setup.ok("rotate-ca", name, "--no-wait", "--propagation", "1h")
    assert "waits for every" in begun.out
    shown = await setup.ok("rotate-ca", name, "--status", "--propagation", "1h")
    # For processes; or, once the bundle is everywhere meanwhile, for that to be noted.
    assert shown.out.startswith(f"{name}: spreading, waits for ")
    assert before in (await Keeper(client, SYSTEM).bundles())[name]
    over = await setup.ok("rotate-ca", name, *FAST)
    assert "made a successor" not in over.err
    assert before not in (await Keeper(client, SYSTEM).bundles())[name]
    assert (await setup.ok("rotate-ca", "--status")).out.count("at rest") == 4


@pytest.mark.parametrize("words", [(), ("pod-identity", "--all"), ("nobody",)])
async def test_it_is_told_which(setup: Setup, words: tuple[str, ...]) -> None:
    assert "pod-identity, service-dns" in (await setup.run("rotate-ca", *words)).complaint
