"""docs/sandbox.md, held to the code."""

from pathlib import Path
from typing import Any

import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.worker import probe
from atenet.worker.egress.sandbox_trust import BUNDLE, VARIABLES
from atenet.worker.network import ACTOR_ADDRESS
from atenet.worker.sandbox import account, bubblewrap, limits, output
from atenet.worker.sandbox.gvisor import bundle
from atenet.worker.settings import WorkerSettings
from atenet.worker.workload import Order, Workload

from tests.support.actor_box import new_incarnation

PAGE = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()


@pytest.mark.parametrize(
    "fact",
    [
        f"`{account.HOME}`",
        *(f"`{name}`" for name in account.files_for("", 0, "")),
        f"{bubblewrap._PRIVATE_BYTES >> 20} MiB each",
        f"{output.LIMIT_BYTES >> 20} MiB and as much again",
        f"| {limits.PROCESSES} |",
        "| 16384 |",
        f"`{ACTOR_ADDRESS}`",
        f"{probe._TRY_SECONDS * 1000:.0f} ms a try",
        f"waits up to {probe._UNPROBED_SECONDS:.0f} s for port {probe.DEFAULT_PORT}",
        "`--suspend-grace`",
        "`--stop-wait`",
        "`--allow-host-path`",
        *(f"`{name}`" for name in VARIABLES),
        f"`wget --ca-certificate={BUNDLE}`",
    ],
)
def test_the_page_says_what_the_code_does(fact: str) -> None:
    assert fact in PAGE


def test_the_flags_that_it_names_exist() -> None:
    for name in ("suspend_grace", "stop_wait", "allow_host_path"):
        assert name in WorkerSettings.__dataclass_fields__


def _row(part: str, named: str) -> str:
    (found,) = [line for line in part.splitlines() if line.startswith(f"| {named} |")]
    return found


def test_it_says_where_an_actor_of_each_class_reads_who_it_is(tmp_path: Path) -> None:
    process, gvisor = PAGE.split("## The gvisor class")
    names = ("ATE_ATESPACE", "ATE_ACTOR")
    container = pb.Container(name="main", command=["true"])
    for name in names:
        container.env.add(name=name, value="somebody-else")
    actor = new_incarnation()
    order = Order.of(pb.ActorTemplate(containers=[container]), actor, tmp_path, ())
    (plan,) = order.containers

    assert [plan.environment[name] for name in names] == [actor.atespace, actor.name]
    assert f"who it is (`{names[0]}` and `{names[1]}`," in _row(process, "environment")

    place = bundle.Place(tmp_path, (), tmp_path, tmp_path, "id", first=True)
    told = bundle.spec(plan, place)["process"]["env"]
    assert not any(variable.startswith(names) for variable in told)
    assert f"never `{names[0]}` or `{names[1]}`" in _row(gvisor, "environment")

    anything: Any = None
    facts = Workload(actor, order, anything, anything, anything)._launch(anything).facts
    for name in facts:
        assert f"`{name}`" in _row(gvisor, "who it is")
