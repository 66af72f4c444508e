"""The demo keeps its promises, as `make demo` runs it."""

import re
import subprocess
import sys

import pytest
from atenet.local.settings import DATAPLANES


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("dataplane", DATAPLANES)
@pytest.mark.conformance(
    "I-01", "I-17", "I-19", "I-23", "E-06", "E-08", "E-10", "E-14", "E-22", "E-23"
)
def test_every_check_of_the_demo_passes(dataplane: str) -> None:
    command = [sys.executable, "-m", "atenet.local.demo", "--dataplane", dataplane]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    total = re.search(r"^(\d+) of (\d+) checks passed$", done.stdout, re.MULTILINE)
    assert total is not None, done.stdout
    assert total[1] == total[2]
    assert int(total[2]) >= 24, "with what needs memory to be kept"
