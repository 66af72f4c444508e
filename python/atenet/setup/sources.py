"""From a values file, variables and flags to one configuration; each fault is named by where it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from atenet.cli.failure import BadInput
from atenet.flags import flag_name
from atenet.setup.config import Config
from atenet.strict import dotted, faults
from atenet.yaml_source import Source, SourceError

__all__ = ["camel", "config_from", "read_values"]

_HINT = "docs/kubernetes/configuration.md lists every key"


def camel(field: str) -> str:
    """The key of a field in the values file."""
    return Config.model_fields[field].alias or field


def read_values(file: Path | None) -> Source:
    """Raises BadInput: it cannot be read, or is no YAML mapping."""
    if file is None:
        return Source("")
    try:
        return Source(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadInput(f"--values: cannot read {file}: {reason}") from error
    except SourceError as error:
        line = "" if error.line is None else f":{error.line}"
        raise BadInput(f"{file}{line}: {error.problem}", hint=_HINT) from error


def config_from(
    flags: Mapping[str, Any],
    values: Source | None = None,
    *,
    file: str = "",
    below: Mapping[str, Any] | None = None,
) -> Config:
    """`flags`: what was given, by field; `values`: the file's keys, under them; `below`: those of an installation.

    Raises BadInput naming the flag, or file, line and key, of everything that is wrong.
    """
    source = values or Source("")
    given = {camel(field): value for field, value in flags.items()}
    try:
        return Config.model_validate({**(below or {}), **source.data, **given})
    except ValidationError as error:
        named = {camel(field): flag_name(field) for field in flags}
        lines = list(_lines(error, named, source, file))
        raise BadInput("\n".join(lines), hint=_HINT) from None


def _lines(
    error: ValidationError, flags: Mapping[str, str], source: Source, file: str
) -> Iterator[str]:
    for path, message in faults(error):
        if path and path[0] in flags:
            yield f"{flags[str(path[0])]}: {message}"
            continue
        where = file
        if file and (line := source.line(path)) is not None:
            where = f"{file}:{line}"
        yield ": ".join(part for part in (where, dotted(path), message) if part)
