"""docs/sandbox.md, held to the code."""

from pathlib import Path

import pytest
from atenet.worker import probe
from atenet.worker.network import ACTOR_ADDRESS
from atenet.worker.sandbox import account, bubblewrap, limits, output
from atenet.worker.settings import WorkerSettings

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
    ],
)
def test_the_page_says_what_the_code_does(fact: str) -> None:
    assert fact in PAGE


def test_the_flags_that_it_names_exist() -> None:
    for name in ("suspend_grace", "stop_wait", "allow_host_path"):
        assert name in WorkerSettings.__dataclass_fields__
