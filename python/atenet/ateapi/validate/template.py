"""Actor templates as callers may write them."""

from __future__ import annotations

import re

from google.protobuf.duration_pb2 import Duration

from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import fields
from atenet.proto import ateapi_pb2 as pb

__all__ = ["CLASSES", "for_create"]

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A null actor is a port and nothing else: for measures and tests.
CLASSES = ("process", "gvisor", "null")
# A page of templates is read as a whole, and a start sends one to a node.
_MAX_BYTES = 512 * 1024
_MAX_CONTAINERS = 16
_MAX_VOLUMES = 64
_MAX_ARGUMENTS = 1024
_MAX_ENV = 1024
# What the kernel takes as one argument or variable.
_MAX_ARGUMENT = 128 * 1024
_MAX_PROBE_SECONDS = 3600
# Workers say every 2 s how idle their actors are.
_LEAST_IDLE = 1
_MOST_IDLE = 365 * 24 * 3600


def for_create(template: pb.ActorTemplate, default_class: str = CLASSES[0]) -> pb.ActorTemplate:
    """The template with defaults filled in, of the fields that a caller may set."""
    at = "actor_template"
    fields.size(at, template, _MAX_BYTES)
    fields.metadata_for_create(f"{at}.metadata", template.metadata, in_atespace=True)
    made = pb.ActorTemplate()
    made.CopyFrom(template)
    made.DiscardUnknownFields()
    made.ClearField("status")
    fields.selector(f"{at}.worker_selector", template.worker_selector)
    volumes = _volumes(f"{at}.volumes", template)
    _sandbox(at, made, default_class)
    images = made.sandbox_config.sandbox_class == "gvisor"
    _containers(f"{at}.containers", template, volumes, images=images)
    fields.within(f"{at}.resources.cpu_milli", template.resources.cpu_milli, 0, 1 << 30)
    fields.within(f"{at}.resources.memory_bytes", template.resources.memory_bytes, 0, 1 << 50)
    for name in ("idle_timeout", "reclaim_after"):
        if template.HasField(name):
            _idleness(f"{at}.{name}", getattr(template, name))
    made.status.ready = True
    return made


def _idleness(field: str, given: Duration) -> None:
    if not 0 <= given.nanos < 10**9:
        raise invalid(f"{field}.nanos", "must be between 0 and 999999999")
    if not _LEAST_IDLE <= given.seconds + given.nanos / 1e9 <= _MOST_IDLE:
        raise invalid(field, f"must be between {_LEAST_IDLE} s and {_MOST_IDLE} s")


def _volumes(field: str, template: pb.ActorTemplate) -> set[str]:
    if len(template.volumes) > _MAX_VOLUMES:
        raise invalid(field, f"has {len(template.volumes)} volumes; at most {_MAX_VOLUMES}")
    names: set[str] = set()
    for i, volume in enumerate(template.volumes):
        at = f"{field}[{i}]"
        fields.name(f"{at}.name", volume.name)
        if volume.name in names:
            raise invalid(f"{at}.name", f"{volume.name!r} is there twice")
        names.add(volume.name)
        if volume.HasField("durable_dir") == volume.HasField("host_path"):
            raise invalid(at, "set exactly one of durable_dir and host_path")
        if volume.HasField("host_path"):
            fields.absolute_path(f"{at}.host_path.path", volume.host_path.path)
    return names


def _containers(field: str, template: pb.ActorTemplate, volumes: set[str], *, images: bool) -> None:
    if not 1 <= len(template.containers) <= _MAX_CONTAINERS:
        raise invalid(field, f"needs between 1 and {_MAX_CONTAINERS} containers")
    names: set[str] = set()
    for i, container in enumerate(template.containers):
        at = f"{field}[{i}]"
        fields.name(f"{at}.name", container.name)
        if container.name in names:
            raise invalid(f"{at}.name", f"{container.name!r} is there twice")
        names.add(container.name)
        if container.image and not images:
            raise invalid(f"{at}.image", "only the gvisor class has images; leave it empty")
        _container(at, container, volumes)


def _container(at: str, container: pb.Container, volumes: set[str]) -> None:
    _command(at, container)
    _env(at, container)
    if container.working_dir and container.working_dir != "/":
        fields.absolute_path(f"{at}.working_dir", container.working_dir)
    if container.image:
        fields.name(f"{at}.image", container.image)
    if container.HasField("wakeup_probe"):
        _probe(f"{at}.wakeup_probe", container.wakeup_probe)
    _mounts(f"{at}.mounts", container, volumes)


def _command(at: str, container: pb.Container) -> None:
    if not (container.command or container.image) or (
        container.command and not container.command[0]
    ):
        raise invalid(f"{at}.command", "is required, unless an image has one")
    if len(container.command) > _MAX_ARGUMENTS:
        raise invalid(f"{at}.command", f"at most {_MAX_ARGUMENTS} arguments")
    for i, argument in enumerate(container.command):
        fields.text(f"{at}.command[{i}]", argument, limit=_MAX_ARGUMENT)


def _env(at: str, container: pb.Container) -> None:
    if len(container.env) > _MAX_ENV:
        raise invalid(f"{at}.env", f"at most {_MAX_ENV} variables")
    names: set[str] = set()
    for i, variable in enumerate(container.env):
        if _ENV_NAME.fullmatch(variable.name) is None:
            raise invalid(f"{at}.env[{i}].name", f"{variable.name!r} is not a variable's name")
        if variable.name in names:
            raise invalid(f"{at}.env[{i}].name", f"{variable.name!r} is there twice")
        names.add(variable.name)
        fields.text(f"{at}.env[{i}].value", variable.value, limit=_MAX_ARGUMENT)


def _probe(at: str, probe: pb.WakeupProbe) -> None:
    if probe.HasField("http_get") == bool(probe.tcp_port):
        raise invalid(at, "set exactly one of http_get and tcp_port")
    fields.within(f"{at}.timeout_seconds", probe.timeout_seconds, 1, _MAX_PROBE_SECONDS)
    if not probe.HasField("http_get"):
        fields.port(f"{at}.tcp_port", probe.tcp_port)
        return
    fields.port(f"{at}.http_get.port", probe.http_get.port)
    path = probe.http_get.path
    printable = path.isascii() and path.isprintable() and " " not in path
    if not path.startswith("/") or not printable:
        raise invalid(f"{at}.http_get.path", "must begin with / and hold no spaces or controls")
    fields.text(f"{at}.http_get.path", path, limit=2048)


def _mounts(field: str, container: pb.Container, volumes: set[str]) -> None:
    paths: set[str] = set()
    for i, mount in enumerate(container.mounts):
        at = f"{field}[{i}]"
        if mount.volume not in volumes:
            raise invalid(f"{at}.volume", f"{mount.volume!r} is not one of the template's volumes")
        fields.absolute_path(f"{at}.path", mount.path)
        if mount.path in paths:
            raise invalid(f"{at}.path", f"{mount.path!r} is there twice")
        paths.add(mount.path)


def _sandbox(at: str, made: pb.ActorTemplate, default_class: str) -> None:
    wanted = made.sandbox_config.sandbox_class or default_class
    if wanted not in CLASSES:
        known = ", ".join(CLASSES)
        raise invalid(f"{at}.sandbox_config.sandbox_class", f"{wanted!r} is not one of {known}")
    made.sandbox_config.sandbox_class = wanted
    full, data = pb.SNAPSHOT_CONTENT_SCOPE_FULL, pb.SNAPSHOT_CONTENT_SCOPE_DATA
    keeps_memory = wanted == "gvisor"
    scope = made.snapshot_config.content_scope or (full if keeps_memory else data)
    if scope not in (full, data) or (scope == full and not keeps_memory):
        raise invalid(
            f"{at}.snapshot_config.content_scope",
            f"the {wanted} class keeps files only; use SNAPSHOT_CONTENT_SCOPE_DATA",
        )
    made.snapshot_config.content_scope = scope
