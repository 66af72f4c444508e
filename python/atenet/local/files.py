"""Small files that other processes read while we write them: replaced by rename, never half there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from atenet.errors import AteError

__all__ = ["read_record", "write_atomically"]


def write_atomically(path: Path, text: str) -> None:
    """Owner-only, whole or not at all."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    try:
        scratch.rename(path)
    except OSError:
        scratch.unlink()
        raise


def read_record(path: Path) -> dict[str, Any] | None:
    """The JSON object in this file; None when there is no file. Raises AteError when damaged."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        found = error
    if not isinstance(found, dict):
        raise AteError(
            f"state directory is damaged: {path} is not readable as a JSON object",
            hint="run `ate down` (it needs no record), then `ate up`",
        )
    return found
