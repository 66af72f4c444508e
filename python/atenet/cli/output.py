"""What people and programs see: tables or JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

__all__ = ["age", "output_option", "show", "working"]

F = TypeVar("F", bound=Callable[..., Any])
_PATIENCE_SECONDS = 1.0


def output_option(command: F) -> F:
    """`-o table|json`, as the parameter `output`."""
    option = click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="A table for people or JSON for programs.",
    )
    return option(command)


def show(output: str, data: Any, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints `data` as JSON, or `rows` under `columns`."""
    if output == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    _line(columns, widths, bold=sys.stdout.isatty())
    for row in rows:
        _line(row, widths)


def _line(cells: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> None:
    text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    click.echo(click.style(text, bold=True) if bold else text)


def age(since: datetime, now: datetime | None = None) -> str:
    """`42s`, `7m`, `3h`, `5d`."""
    seconds = max(0, int(((now or datetime.now(UTC)) - since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Says on stderr what is being waited for, once it has taken a second.

    Yields a function that changes the text. A terminal gets a spinner, a file at most one line a second.
    """
    progress = _Progress(what)
    timer = threading.Timer(_PATIENCE_SECONDS, progress.appear)
    timer.daemon = True
    timer.start()
    try:
        yield progress.say
    finally:
        timer.cancel()
        progress.vanish()


class _Progress:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._visible = self._over = False
        self._quiet_until = 0.0
        self._status: Any = None

    def appear(self) -> None:
        with self._lock:
            if self._over:
                return
            self._visible = True
            if sys.stderr.isatty():
                from rich.console import Console  # only for what takes long, on a terminal

                self._status = Console(stderr=True).status(f"{self._text} …")
                self._status.start()
            else:
                self._line()

    def say(self, text: str) -> None:
        with self._lock:
            if text == self._text:
                return
            self._text = text
            if self._status is not None:
                self._status.update(f"{text} …")
            elif self._visible and time.monotonic() >= self._quiet_until:
                self._line()

    def _line(self) -> None:
        # A log wants to know that it goes on, not each step.
        self._quiet_until = time.monotonic() + _PATIENCE_SECONDS
        click.echo(f"{self._text} ...", err=True)

    def vanish(self) -> None:
        with self._lock:
            self._over = True
            if self._status is not None:
                self._status.stop()
