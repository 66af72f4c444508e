"""The published schema is the models'."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_committed_schema_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_schema.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
