"""Reads a configuration file; every problem is named by file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from atenet.agentgateway.model import AgentGatewayConfig
from atenet.agentgateway.model.both import BothFile, ConfigFile
from atenet.agentgateway.model.egress import EgressFile
from atenet.errors import AteError
from atenet.strict import dotted, faults
from atenet.yaml_source import Source, SourceError

__all__ = ["ConfigFileError", "Problem", "load", "parse"]


# What only a file with an ingress router has.
_INGRESS_KEYS = frozenset({"gateways", "routes", "backends"})


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `path`: the key, e.g. `gateways.secure.tls.cert`."""

    path: str
    message: str
    line: int | None = None

    def text(self, file: str) -> str:
        """`FILE:LINE: PATH: MESSAGE`."""
        where = file if self.line is None else f"{file}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ConfigFileError(AteError):
    """A configuration file that cannot be used. `problems`: all that were found."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        super().__init__(
            "\n".join(problem.text(file) for problem in problems),
            hint="docs/agentgateway.schema.json lists every key; check with: atenet agentgateway --validate -f FILE",
        )
        self.problems = tuple(problems)

    @classmethod
    def at(cls, file: Path, problem: Problem) -> ConfigFileError:
        """One problem of a file that parses, with the line of its key."""
        line = Source(file.read_text(encoding="utf-8")).line(steps(problem.path))
        return cls(str(file), [replace(problem, line=line)])


def load(file: Path) -> ConfigFile:
    """Reads and checks `file`. Raises ConfigFileError, and AteError when it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise AteError(
            f"cannot read {file}: {reason}", hint="name the file with -f FILE"
        ) from error
    return parse(text, str(file))


def parse(text: str, file: str) -> ConfigFile:
    """Checks `text`; `file` is its name in errors. Raises ConfigFileError.

    A file with `frontendPolicies.substrateEgressActorResolution` is an egress gateway's; one that has gateways,
    routes, backends or binds of an ingress router besides is both.
    """
    try:
        source = Source(text)
    except SourceError as error:
        raise ConfigFileError(file, [Problem("", error.problem, error.line)]) from error
    try:
        return _model(source.data).model_validate(source.data)
    except ValidationError as error:
        raise ConfigFileError(file, list(_problems(error, source))) from None


def _model(data: Any) -> type[ConfigFile]:
    front = data.get("frontendPolicies")
    if not (isinstance(front, dict) and "substrateEgressActorResolution" in front):
        return AgentGatewayConfig
    binds = data.get("binds")
    ingress = isinstance(binds, list) and any(_is_ingress_bind(bind) for bind in binds)
    return BothFile if ingress or _INGRESS_KEYS & data.keys() else EgressFile


def _is_ingress_bind(bind: Any) -> bool:
    """One that says so: what is neither one's is better told what an egress gateway's must be."""
    routes = [
        route
        for listener in _list(bind, "listeners")
        for route in _list(listener, "routes")
        if isinstance(route, dict)
    ]
    return any("substrateIngress" in (route.get("policies") or {}) for route in routes)


def _list(part: Any, key: str) -> list[Any]:
    found = part.get(key) if isinstance(part, dict) else None
    return found if isinstance(found, list) else []


def _problems(error: ValidationError, source: Source) -> Iterator[Problem]:
    for path, message in faults(error):
        yield Problem(dotted(path), message, source.line(path))


def steps(path: str) -> list[str | int]:
    """`a[0].b` as `["a", 0, "b"]`."""
    parts = path.replace("[", ".[").split(".")
    return [int(part[1:-1]) if part.startswith("[") else part for part in parts]
