"""Where a URI's secret is kept, and reading it. An actor gets only what stands under its own atespace."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from atenet.credentials.failure import Denied, NotThere
from atenet.credentials.kubernetes import KubernetesSecrets

__all__ = ["MAX_BYTES", "Secrets"]

# A header's value is what becomes of it.
MAX_BYTES = 16 * 1024
# No double underscore and none at an end: the last double one of a variable's name stands before it.
_VARIABLE = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")


@dataclass(frozen=True)
class Secrets:
    """`directory` holds one directory for each atespace, `prefix` begins the variables' names. None: not served."""

    directory: Path | None
    prefix: str | None
    environment: Mapping[str, str]
    kubernetes: KubernetesSecrets | None = None

    def read(self, atespace: str, path: Sequence[str]) -> bytes:
        """The secret of a URI's path segments (the provider's name first). Raises SecretsError.

        `atespace` and segments are checked names: no slash, `.` or `..` among them.
        """
        provider, *tail = path
        if provider == "file" and self.directory is not None:
            return _file(self.directory / atespace, tail)
        if provider == "env" and self.prefix is not None:
            return self._variable(atespace, tail)
        if provider == "secret" and self.kubernetes is not None:
            return self.kubernetes.read(atespace, tail)
        raise NotThere(f"there is no provider {provider!r} here")

    def _variable(self, atespace: str, tail: Sequence[str]) -> bytes:
        if len(tail) != 1 or not _VARIABLE.fullmatch(tail[0]):
            raise NotThere(
                "a variable is named by one word of letters and digits, with single _ between them: "
                "a double one parts it from the atespace"
            )
        value = self.environment.get(f"{self.prefix}{_variable_of(atespace, tail[0])}")
        if value is None:
            raise NotThere("the variable is not set")
        return os.fsencode(value)


def _variable_of(atespace: str, name: str) -> str:
    """Another one for each pair, but that `name` may be in capitals or not.

    An atespace's name is in small letters, has no `_` and begins and ends with a letter or digit, so
    none reads as another; it may have `--`, so what parts the two is the last `__`, not the first.
    """
    return f"{atespace.replace('-', '_')}__{name}".upper()


def _file(root: Path, tail: Sequence[str]) -> bytes:
    path = root.joinpath(*tail)
    try:
        # A link may lead within the atespace's own directory and nowhere else.
        resolved = path.resolve(strict=True)
        if not resolved.is_relative_to(root.resolve(strict=True)):
            raise Denied("the file is outside the atespace's directory")
        descriptor = os.open(resolved, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotThere("the file is not there") from error
    except (OSError, RuntimeError) as error:
        raise Denied("the file cannot be read") from error
    with _regular(descriptor) as file:
        secret = file.read(MAX_BYTES + 1)
    if len(secret) > MAX_BYTES:
        raise Denied(f"the file is larger than {MAX_BYTES} bytes")
    return secret


def _regular(descriptor: int) -> BinaryIO:
    """The open file, which it is now the caller's to close. Raises Denied for a directory or a pipe."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Denied("it is no regular file")
    return os.fdopen(descriptor, "rb")
