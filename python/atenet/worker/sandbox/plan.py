"""From an actor's template to what each of its containers runs and sees; sans-I/O but for links.

Everything a template can get wrong is said here, before anything is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from atenet._engine import check_name
from atenet.errors import AteError
from atenet.proto import ateapi_pb2
from atenet.worker.sandbox.account import HOME

__all__ = [
    "Bind",
    "Common",
    "ContainerPlan",
    "InvalidTemplateError",
    "plan_containers",
    "volume_directories",
]

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What the sandbox itself puts there; a volume must not cover or contain it.
_SYSTEM = (
    *("/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/proc", "/run", "/sbin", "/sys", "/usr"),
)
_SYSTEM_EXACT = ("/", "/home", "/tmp", HOME)  # noqa: S108 - a place in the sandbox


class InvalidTemplateError(AteError):
    """The template asks for something that cannot be; the message names the field."""


@dataclass(frozen=True)
class Bind:
    """`source` on the host seen at `target` in the sandbox."""

    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True)
class Common:
    """What every container of a worker has. Variables: unless its template sets them."""

    environment: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()


@dataclass(frozen=True)
class ContainerPlan:
    """One container, ready to be started by any sandbox class."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)  # may hold secrets
    working_dir: str
    binds: tuple[Bind, ...]
    image: str = (
        ""  # its command, variables and directory stand in for what the template leaves out
    )


def volume_directories(template: ateapi_pb2.ActorTemplate, actor_dir: Path) -> dict[str, Path]:
    """The durable directory of each durable_dir volume, by volume name."""
    return {
        volume.name: actor_dir / "volumes" / volume.name
        for volume in template.volumes
        if volume.HasField("durable_dir")
    }


def plan_containers(
    template: ateapi_pb2.ActorTemplate,
    actor: ateapi_pb2.ObjectRef,
    actor_dir: Path,
    allowed_host_paths: Sequence[Path],
    common: Common = Common(),
) -> tuple[ContainerPlan, ...]:
    """Raises InvalidTemplateError naming the field. Host paths are resolved: no link escapes."""
    if not template.containers:
        raise InvalidTemplateError(
            "template.containers is empty", hint="name at least one container"
        )
    sources = _volume_sources(template, actor_dir, allowed_host_paths)
    identity = {"ATE_ATESPACE": actor.atespace, "ATE_ACTOR": actor.name}
    plans: list[ContainerPlan] = []
    for index, container in enumerate(template.containers):
        where = f"template.containers[{index}]"
        _check_name(container.name, f"{where}.name", [p.name for p in plans])
        plans.append(_plan(container, where, sources, identity, common))
    return tuple(plans)


def _plan(
    container: ateapi_pb2.Container,
    where: str,
    sources: dict[str, tuple[Path, bool]],
    identity: dict[str, str],
    common: Common,
) -> ContainerPlan:
    if not (container.command or container.image) or (
        container.command and not container.command[0]
    ):
        raise InvalidTemplateError(
            f"{where}.command is empty", hint="give the program and its arguments"
        )
    if any("\0" in word for word in container.command):
        raise InvalidTemplateError(f"{where}.command has a NUL character")
    binds = _binds(container, where, sources)
    return ContainerPlan(
        name=container.name,
        command=tuple(container.command),
        environment={**common.environment, **_environment(container, where), **identity},
        working_dir=_working_dir(container, where),
        binds=(*common.binds, *binds),
        image=container.image,
    )


def _environment(container: ateapi_pb2.Container, where: str) -> dict[str, str]:
    environment = {"PATH": DEFAULT_PATH, "HOME": HOME}
    for index, variable in enumerate(container.env):
        if not _VARIABLE.fullmatch(variable.name):
            raise InvalidTemplateError(
                f"{where}.env[{index}].name {variable.name!r} is not a variable name"
            )
        if "\0" in variable.value:
            raise InvalidTemplateError(f"{where}.env[{index}].value has a NUL character")
        environment[variable.name] = variable.value
    return environment


def _working_dir(container: ateapi_pb2.Container, where: str) -> str:
    if not container.working_dir:
        return HOME
    return _absolute(container.working_dir, f"{where}.working_dir")


def _binds(
    container: ateapi_pb2.Container, where: str, sources: dict[str, tuple[Path, bool]]
) -> tuple[Bind, ...]:
    binds: list[Bind] = []
    for index, mount in enumerate(container.mounts):
        at = f"{where}.mounts[{index}]"
        if mount.volume not in sources:
            raise InvalidTemplateError(
                f"{at}.volume {mount.volume!r} is not a volume of the template",
                hint=f"it has: {', '.join(sorted(sources)) or 'none'}",
            )
        target = _mount_point(mount.path, f"{at}.path", [bind.target for bind in binds])
        source, always_read_only = sources[mount.volume]
        binds.append(Bind(source, target, always_read_only or mount.read_only))
    return tuple(binds)


def _mount_point(path: str, where: str, taken: list[str]) -> str:
    target = _absolute(path, where)
    if target in _SYSTEM_EXACT or any(_within(target, system) for system in _SYSTEM):
        raise InvalidTemplateError(f"{where} {path!r} belongs to the system", hint="use e.g. /data")
    for other in taken:
        # A mount point below a durable directory would be made by root inside what the actor
        # owns, where the actor may have left links that lead elsewhere.
        if _within(target, other) or _within(other, target):
            raise InvalidTemplateError(f"{where} {path!r} overlaps the mount at {other!r}")
    return target


def _volume_sources(
    template: ateapi_pb2.ActorTemplate, actor_dir: Path, allowed: Sequence[Path]
) -> dict[str, tuple[Path, bool]]:
    """Each volume's directory on the host and whether it is always read-only."""
    durable = volume_directories(template, actor_dir)
    sources: dict[str, tuple[Path, bool]] = {}
    for index, volume in enumerate(template.volumes):
        where = f"template.volumes[{index}]"
        _check_name(volume.name, f"{where}.name", list(sources))
        if volume.HasField("durable_dir") == volume.HasField("host_path"):
            raise InvalidTemplateError(f"{where} needs exactly one of durable_dir and host_path")
        if volume.HasField("durable_dir"):
            sources[volume.name] = (durable[volume.name], False)
        else:
            path = _host_path(volume.host_path.path, f"{where}.host_path.path", allowed)
            sources[volume.name] = (path, True)
    return sources


def _host_path(path: str, where: str, allowed: Sequence[Path]) -> Path:
    _absolute(path, where)
    try:
        real = Path(path).resolve(strict=True)
    except (OSError, RuntimeError):
        raise InvalidTemplateError(f"{where} {path!r} does not exist on this node") from None
    if not any(real.is_relative_to(prefix.resolve()) for prefix in allowed):
        raise InvalidTemplateError(
            f"{where} {path!r} is not below an allowed host path",
            hint="start the worker with --allow-host-path for it",
        )
    return real


def _absolute(path: str, where: str) -> str:
    """The path as given, minus a trailing slash; nothing is resolved."""
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or "\0" in path or str(pure).startswith("//"):
        raise InvalidTemplateError(f"{where} {path!r} is not an absolute path without '..'")
    return str(pure)


def _check_name(name: str, where: str, taken: list[str]) -> None:
    try:
        check_name(name)
    except ValueError as e:
        raise InvalidTemplateError(f"{where} {name!r}: {e}") from e
    if name in taken:
        raise InvalidTemplateError(f"{where} {name!r} is used twice")


def _within(path: str, parent: str) -> bool:
    return PurePosixPath(path).is_relative_to(parent)
