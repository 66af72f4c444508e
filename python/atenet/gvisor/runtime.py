"""What a memory image depends on besides its template: runsc's version and the processor."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.gvisor.locate import version_of

__all__ = ["Runtime", "RuntimeMismatchError"]

_LOOK_SECONDS = 10.0


class RuntimeMismatchError(AteError):
    """A memory image cannot be restored here; the message says what differs."""


@dataclass(frozen=True)
class Runtime:
    """`features`: the processor's, by runsc's names, sorted."""

    version: str
    machine: str
    features: tuple[str, ...]

    @classmethod
    def of(cls, program: Path) -> Runtime:
        """Blocks for some ms. Raises AteError when the program does not run."""
        version = version_of(program)
        if version is None:
            raise AteError(f"{program} does not run", hint="`make runsc` builds a new one")
        said = subprocess.run(
            [program, "cpu-features"],
            capture_output=True,
            text=True,
            timeout=_LOOK_SECONDS,
            check=False,
        )
        if said.returncode:
            raise AteError(f"{program} cpu-features: {said.stderr.strip()}")
        names = {word for word in said.stdout.strip().split(",") if word}
        return cls(version, platform.machine(), tuple(sorted(names)))

    def check(self, saved: Runtime) -> None:
        """Raises RuntimeMismatchError when memory saved under `saved` cannot go on here."""
        if saved.version != self.version:
            raise RuntimeMismatchError(
                f"the snapshot's memory is of runsc {saved.version}, this worker has {self.version}",
                hint="revert the actor, or resume it where that runsc is installed",
            )
        if saved.machine != self.machine:
            raise RuntimeMismatchError(
                f"the snapshot's memory is of a {saved.machine} processor, this is {self.machine}"
            )
        missing = sorted(set(saved.features) - set(self.features))
        if missing:
            raise RuntimeMismatchError(
                "the snapshot's memory is of a processor with features that this one lacks: "
                + ", ".join(missing)
            )

    def as_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "machine": self.machine,
            "features": list(self.features),
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Runtime:
        """Raises TypeError, KeyError or ValueError for anything else."""
        version, machine, features = given["version"], given["machine"], given["features"]
        if not (isinstance(version, str) and isinstance(machine, str)):
            raise TypeError("version and machine must be texts")
        if not (isinstance(features, list) and all(isinstance(f, str) for f in features)):
            raise TypeError("features must be a list of texts")
        return cls(version, machine, tuple(features))
