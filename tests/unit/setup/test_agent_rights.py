"""What the node agent's pod may do suffices for what it has to do there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from atenet.worker.sandbox import account_of

from tests.unit.setup.rendered import Object, config, rendered

ACTOR = "0a9cbb8e-5f0d-4c3b-8a55-0d0c1a3f7e21"
FENCE = f"from atenet.atelet.fence import fence; print(fence('{ACTOR}'))"


@pytest.fixture
def agent() -> Object:
    """Its pod."""
    (found,) = (
        each
        for each in rendered(config("envoy"), pod_certificates=True)
        if each["kind"] == "DaemonSet"
    )
    pod: Object = found["spec"]["template"]["spec"]
    return pod


@pytest.fixture
def left_over() -> Iterator[subprocess.Popen[bytes]]:
    """A process of an actor whose worker does not look after it."""
    account = account_of(ACTOR)
    with subprocess.Popen(["sleep", "infinity"], user=account, group=account) as process:
        yield process
        process.kill()


def test_it_sees_the_nodes_processes(agent: Object) -> None:
    assert agent["hostPID"] is True


def test_it_may_end_what_an_actor_left(agent: Object, left_over: subprocess.Popen[bytes]) -> None:
    (container,) = agent["containers"]
    rights = container["securityContext"]["capabilities"]
    assert rights["drop"] == ["ALL"]
    bounds = ",".join(["-all", *(f"+{name.lower()}" for name in rights["add"])])
    command = ["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all", sys.executable, "-c"]
    done = subprocess.run([*command, FENCE], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr
    assert left_over.wait(10) == -9
