"""docs/agentgateway.md is what the model of the file says of itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "tools" / "generate_agentgateway_docs.py"


def test_the_committed_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_key_of_the_schema_is_on_the_page() -> None:
    page = (TOP / "docs" / "agentgateway.md").read_text()
    schema: dict[str, Any] = json.loads((TOP / "docs" / "agentgateway.schema.json").read_text())
    mappings = [schema, *schema["$defs"].values()]
    keys = {key for mapping in mappings for key in mapping.get("properties", {})}
    assert len(keys) > 40
    assert [key for key in sorted(keys) if f"| `{key}` |" not in page] == []
