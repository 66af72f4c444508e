"""What `ate-setup status` says of authorities, read from the API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.holding import Holding, create_authority
from atenet.controller.signing.keeper import bundle_pem

from tests.kubernetes.setup_command import Setup
from tests.support.kube_cluster import KubeCluster

MAP = f"/api/v1/namespaces/ate-system/configmaps/{names.AUTHORITIES_MAP}"
SECRET = f"/api/v1/namespaces/ate-system/secrets/{names.authority_secret(names.INTERCEPTION)}"
FAST = ("--propagation", "1s", "--leaf-life", "1s")


@pytest.fixture
async def setup(kube: KubeCluster, tmp_path: Path) -> Setup:
    made = Setup(kube, tmp_path)
    await made.install()
    return made


def age(setup: Setup, name: str, years: float) -> None:
    """As if it had been made so long ago: key, certificate, and the bundle."""
    old = create_authority(name, datetime.now(UTC) - timedelta(days=365 * years))
    setup.patch(SECRET, {"data": Holding(name, old).data()})
    setup.patch(MAP, {"data": {names.trust_key(name): bundle_pem([old.certificate])}})


async def test_of_a_new_installation_nothing_is_said(setup: Setup) -> None:
    assert "authority" not in (await setup.run("status")).err


async def test_an_old_authority_is_warned_of_until_it_is_rotated_as_the_hint_says(
    setup: Setup,
) -> None:
    age(setup, names.INTERCEPTION, 3)
    done = await setup.run("status")
    assert "warning: authority interception: has signed since" in done.err
    (hint,) = (line for line in done.err.splitlines() if "rotate-ca" in line)
    command = hint.split("`")[1].split()
    assert command[0] == "ate-setup"
    told = json.loads((await setup.run("status", "-o", "json")).out)
    assert [each["where"] for each in told["authorities"]] == ["authority interception"]
    await setup.install()
    for _ in range(2):  # the controller, who spreads bundles, does not run here
        await setup.ok(*command[1:], *FAST, "--no-wait")
    assert "authority" not in (await setup.run("status")).err


async def test_one_that_ended_is_a_problem(setup: Setup) -> None:
    age(setup, names.INTERCEPTION, 11)
    done = await setup.run("status")
    assert "problem: authority interception: ended on" in done.err
    assert json.loads((await setup.run("status", "-o", "json")).out)["healthy"] is False
