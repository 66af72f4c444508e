import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from atenet.atelet.main import _housekeeping
from atenet.atelet.settings import AteletSettings
from atenet.daemon import Stop
from atenet.flags import flag_name
from atenet.identity import LocalIdentity, spiffe

from tests.support.node import Node

PROGRAM = str(Path(sys.executable).with_name("atelet"))


def flags(where: Path, **changed: str) -> list[str]:
    values = {
        "node": "n",
        "listen": "127.0.0.1:0",
        "credential": str(where / "pod.pem"),
        "trust": str(where / "trust.pem"),
        "api": "127.0.0.1:1",
        "api-roots": str(where / "roots.pem"),
        "state-dir": str(where / "state"),
        "snapshots": str(where / "snapshots"),
        "socket": str(where / "s"),
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    return [word for name, value in values.items() for word in (f"--{name}", value)]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"node": "No Name"}, "--node 'No Name'"),
        ({"worker_timeout": "soon"}, "--worker-timeout"),
        ({"unknown": "x"}, "--unknown"),
        ({"egress_gateway_address": "gateway.example"}, "--egress-gateway-address"),
        ({"egress_gateway_address": ":443"}, "--egress-gateway-address"),
        ({"egress_gateway_address": "gateway.example:0"}, "--egress-gateway-address"),
        ({"state_dir": "/dev/null/x"}, "--state-dir /dev/null/x"),
        ({"snapshots": "/dev/null/x"}, "--snapshots /dev/null/x"),
        ({}, "pod.pem"),
    ],
)
def test_a_wrong_flag_is_named(tmp_path: Path, changed: dict[str, str], named: str) -> None:
    done = subprocess.run(
        [PROGRAM, *flags(tmp_path, **changed)], capture_output=True, text=True, timeout=30
    )
    assert done.returncode in (1, 2)
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("node", [None, "other"])
def test_a_certificate_of_another_node_is_refused_at_the_start(
    tmp_path: Path, node: str | None
) -> None:
    identity = LocalIdentity(tmp_path)
    identity.ensure()
    credential = identity.credential("atelet", spiffe.ATELET_ID, node=node)
    done = subprocess.run(
        [PROGRAM, *flags(tmp_path, credential=str(credential))],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert f"--credential {credential} is not of --node n" in done.stderr
    assert "n.atelet.ate-system.pod.cluster.local" in done.stderr


def test_help_names_every_flag() -> None:
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    for field in fields(AteletSettings):
        assert flag_name(field.name) in done.stdout


async def test_it_writes_below_its_directories_only_and_ends_with_0(alone: Node) -> None:
    assert alone.atelet is not None
    assert await alone.stop(alone.atelet) == 0
    assert not (alone.root / "atelet.sock").exists()
    made = {
        str(Path(base).relative_to(alone.root)).split("/")[0] for base, *_ in os.walk(alone.root)
    }
    assert made == {".", "ca", "identity", "trust", "node", "snapshots"}


async def test_housekeeping_that_fails_ends_nothing() -> None:
    stop, asked = Stop(), []

    def broken() -> None:
        asked.append("broken")
        raise RecursionError

    def last() -> None:
        asked.append("last")
        stop.set()

    await _housekeeping((broken, last), stop)
    assert asked == ["broken", "last"]
