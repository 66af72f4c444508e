"""What the demo says: one line a promise, with what was seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click

from atenet.errors import AteError

__all__ = ["Report", "require"]


class _Broken(Exception):
    """A promise that was not kept; the text is what was seen instead."""


def require(true: bool, seen: str) -> None:
    """Fails the running check with what was seen, unless `true`."""
    if not true:
        raise _Broken(seen)


@dataclass
class Report:
    """Collects the outcome of each check and prints it at once."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)

    def check(self, promise: str, look: Callable[[], str]) -> None:
        """Runs `look`, which returns what it saw; whatever it raises is a promise that was not kept."""
        began = time.monotonic()
        try:
            seen, kept = look(), True
        except (_Broken, AteError, OSError) as error:
            seen, kept = str(error).replace("\n", "; "), False
        except Exception as error:  # noqa: BLE001 - a check that breaks is one that failed; the others go on
            seen, kept = f"{type(error).__name__}: {error}".replace("\n", "; "), False
        self._line(promise, seen, kept, time.monotonic() - began)

    def _line(self, promise: str, seen: str, kept: bool, took: float) -> None:
        mark = click.style("ok  ", fg="green") if kept else click.style("FAIL", fg="red", bold=True)
        click.echo(f"  {mark}  {promise:<48} {seen}  [{took:.1f} s]")
        if kept:
            self.passed += 1
        else:
            self.failed.append(promise)

    def conclude(self) -> int:
        """The last line and the exit code."""
        total = self.passed + len(self.failed)
        click.echo(f"\n{self.passed} of {total} checks passed")
        return 1 if self.failed else 0
