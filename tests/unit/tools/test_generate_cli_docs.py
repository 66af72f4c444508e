"""docs/cli.md is what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "tools" / "generate_cli_docs.py"


def test_the_committed_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_flag_of_every_script_is_on_the_page() -> None:
    page = (TOP / "docs" / "cli.md").read_text()
    for script in (
        "ate up",
        "ate curl",
        "ate template create",
        "ateapi serve",
        "atenet agentgateway",
    ):
        assert f"### {script}\n" in page
    assert page.count("--help ") > 20
