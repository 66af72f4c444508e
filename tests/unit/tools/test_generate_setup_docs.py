"""docs/kubernetes/configuration.md is what the model says."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "generate_setup_docs.py"


def test_the_committed_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
