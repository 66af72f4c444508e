"""Errors that people read: what happened, then what to do about it."""

from __future__ import annotations

__all__ = ["AteError", "of_system"]


class AteError(Exception):
    """Something a person can act on.

    `message` says what happened and names the field, flag or file; `hint` says what to do.
    Commands print them as two lines and exit 1.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


def of_system(error: OSError) -> AteError:
    """What the operating system refused, with the file that it was about."""
    what = error.strerror or str(error) or type(error).__name__
    file = error.filename2 or error.filename
    return AteError(
        f"{file}: {what}" if file else what,
        hint="move it away if it is not what belongs there" if file else None,
    )
