"""How a command ends: what happened on one line, a `hint:` on the next, and an exit code that tells them apart."""

from __future__ import annotations

import os
import sys
from enum import IntEnum

import click

from atenet.errors import AteError

__all__ = ["BadInput", "ExitCode", "NoSuchThing", "NotReachable", "run"]


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NO_SUCH_THING = 3
    NOT_REACHABLE = 4
    INTERRUPTED = 130


class BadInput(AteError):
    """What was asked cannot be: exit 2."""


class NoSuchThing(AteError):
    """What was named does not exist: exit 3."""


class NotReachable(AteError):
    """There is no running system to talk to: exit 4."""


_NOWHERE = click.Context(click.Command("nowhere"))

_CODES: tuple[tuple[type[AteError], ExitCode], ...] = (
    (BadInput, ExitCode.BAD_INPUT),
    (NoSuchThing, ExitCode.NO_SUCH_THING),
    (NotReachable, ExitCode.NOT_REACHABLE),
)


def run(command: click.Command, name: str = "ate") -> int:
    """Runs the command line in sys.argv and returns its exit code."""
    try:
        answer = command.main(standalone_mode=False, prog_name=name)
        return answer if isinstance(answer, int) else ExitCode.DONE
    except AteError as error:
        complain(error, otherwise=f"`{_path(command, name)} --help` shows more")
        return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitCode.BAD_INPUT
    except click.ClickException as error:
        _usage(error)
        return ExitCode.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # `ate actor list | head`: nobody reads on, and nobody wants to hear of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED


def complain(error: AteError, otherwise: str | None = None) -> None:
    """Two lines on stderr; `otherwise` is the hint of an error that has none."""
    click.echo(f"{click.style('error', fg='red')}: {error.message}", err=True)
    if hint := error.hint or otherwise:
        click.echo(f"{click.style('hint', fg='cyan')}: {hint}", err=True)


def _path(command: click.Command, name: str) -> str:
    """The words of sys.argv that name the command: `ate actor create`."""
    words = [name]
    for word in sys.argv[1:]:
        inside = isinstance(command, click.Group) and command.get_command(_NOWHERE, word)
        if not inside:
            break
        command = inside
        words.append(word)
    return " ".join(words)


def _usage(error: click.ClickException) -> None:
    if isinstance(error.__cause__, AteError):
        complain(error.__cause__)
        return
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "ate"
    text = error.format_message().removesuffix(".")
    complain(AteError(text, hint=f"`{path} --help` shows what is allowed"))
