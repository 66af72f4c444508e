"""Single fields. Every failure is InvalidArgument and begins with the field's path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from google.protobuf.message import Message

from atenet._engine import check_name
from atenet.ateapi.failure import invalid
from atenet.proto import ateapi_pb2 as pb

__all__ = [
    "absolute_path",
    "audiences",
    "labels",
    "metadata_for_create",
    "name",
    "options",
    "port",
    "reference",
    "seen",
    "selector",
    "size",
    "text",
    "token_lifetime",
    "within",
]

# As Kubernetes has them: an optional DNS prefix, then a short name; values may be empty.
_KEY = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?", re.ASCII
)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_MAX_LABELS = 64
_MAX_AUDIENCES = 16
_MAX_AUDIENCE = 512


def name(field: str, value: str) -> None:
    """One resource name, by the engine's rule."""
    if not value:
        raise invalid(field, "is required")
    try:
        check_name(value)
    except ValueError as e:
        raise invalid(field, str(e)) from e


def reference(field: str, ref: pb.ObjectRef) -> tuple[str, str]:
    """Both halves of a reference, checked."""
    name(f"{field}.atespace", ref.atespace)
    name(f"{field}.name", ref.name)
    return ref.atespace, ref.name


def metadata_for_create(field: str, meta: pb.ResourceMetadata, *, in_atespace: bool) -> None:
    """Names as the kind wants them, and nothing that only the server may say."""
    if in_atespace:
        name(f"{field}.atespace", meta.atespace)
    elif meta.atespace:
        raise invalid(f"{field}.atespace", "must be empty: this kind is in no atespace")
    name(f"{field}.name", meta.name)
    if meta.uid:
        raise invalid(f"{field}.uid", "is set by the server; leave it empty")
    if meta.version:
        raise invalid(f"{field}.version", "is set by the server; leave it empty")


def seen(field: str, meta: pb.ResourceMetadata) -> None:
    """What a whole-object update must say of the object that its caller saw."""
    if not meta.uid:
        raise invalid(f"{field}.uid", "is required")
    text(f"{field}.uid", meta.uid, limit=64)
    if meta.version < 1:
        raise invalid(f"{field}.version", "is required")


def audiences(field: str, given: Sequence[str]) -> None:
    """Of an actor's token: 1 to 16 of 1 to 512 printable characters."""
    if not 1 <= len(given) <= _MAX_AUDIENCES:
        raise invalid(field, f"needs between 1 and {_MAX_AUDIENCES} audiences")
    for i, audience in enumerate(given):
        if not audience.isprintable() or not 1 <= len(audience) <= _MAX_AUDIENCE:
            raise invalid(f"{field}[{i}]", f"must be 1 to {_MAX_AUDIENCE} printable characters")


def token_lifetime(field: str, seconds: int) -> None:
    """Of an actor's token."""
    within(field, seconds, 300, 3600)


def options(field: str, given: pb.DeleteOptions) -> None:
    if given.version < 0:
        raise invalid(f"{field}.version", "must not be negative (0 = no check)")
    text(f"{field}.uid", given.uid, limit=64)


def selector(field: str, given: pb.Selector) -> None:
    labels(f"{field}.match_labels", given.match_labels)


def labels(field: str, given: Mapping[str, str]) -> None:
    if len(given) > _MAX_LABELS:
        raise invalid(field, f"has {len(given)} labels; at most {_MAX_LABELS}")
    for key, value in given.items():
        if _KEY.fullmatch(key) is None:
            raise invalid(field, f"{key!r} is not a label key")
        if _VALUE.fullmatch(value) is None:
            raise invalid(f"{field}[{key}]", f"{value!r} is not a label value")


def absolute_path(field: str, value: str) -> None:
    """Absolute, in normal form, and not the root itself."""
    text(field, value, limit=4096)
    path = PurePosixPath(value)
    if not value.startswith("/") or str(path) != value or ".." in path.parts or value == "/":
        raise invalid(field, f"{value!r} is not an absolute path in normal form")


def port(field: str, value: int) -> None:
    within(field, value, 1, 65535)


def size(field: str, message: Message, limit: int) -> None:
    """All of it together: many good fields can still be more than anybody can read back."""
    found = message.ByteSize()
    if found > limit:
        raise invalid(field, f"has {found} bytes; at most {limit}")


def within(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise invalid(field, f"{value} is not between {low} and {high}")


def text(field: str, value: str, *, limit: int) -> None:
    """Any text without NUL, at most `limit` characters."""
    if len(value) > limit:
        raise invalid(field, f"has {len(value)} characters; at most {limit}")
    if "\0" in value:
        raise invalid(field, "must not contain NUL")
