"""Contract messages from YAML: every mistake is named by its line and field, with what is allowed there."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from atenet.cli.failure import BadInput
from atenet.flags import seconds

__all__ = ["Document", "parse_messages", "read_text"]

M = TypeVar("M", bound=Message)

# What a person writes; the rest of the message is the server's.
_NOT_INPUT = {
    "ateapi.ActorTemplate": {"status"},
    "ateapi.ResourceMetadata": {"uid", "version", "create_time", "update_time"},
}
_DURATION = "google.protobuf.Duration"
_STR, _INT, _BOOL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int", "tag:yaml.org,2002:bool"
_FLOAT, _NULL = "tag:yaml.org,2002:float", "tag:yaml.org,2002:null"


@dataclass
class Document(Generic[M]):
    """One message, and the line (from 1) of each of its fields, by path: `rules[3].https.hostnames[0]`."""

    message: M
    lines: dict[str, int] = field(default_factory=dict)

    def line(self, path: str) -> int:
        """The line of the field, or of the nearest one around it that is there."""
        while path and path not in self.lines:
            cut = max(path.rfind("."), path.rfind("["))
            path = path[: max(cut, 0)]
        return self.lines.get(path, 1)


def read_text(file: str) -> tuple[str, str]:
    """A file's text (`-`: standard input) and what it is called in errors. Raises BadInput."""
    if file == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(file).read_text(encoding="utf-8"), file
    except OSError as error:
        raise BadInput(
            f"cannot read {file}: {error.strerror}", hint="name a file, or - for standard input"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text") from error


def parse_messages(text: str, source: str, kind: type[M], what: str) -> list[Document[M]]:
    """One message for each YAML document; `what` a document is, in words. Pure. Raises BadInput."""
    try:
        nodes = yaml.compose_all(text, Loader=yaml.SafeLoader)
        documents = [node for node in nodes if node is not None and not _is_null(node)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise BadInput(f"{source}, line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{source}: {error}") from error
    if not documents:
        raise BadInput(f"{source} holds no {what}", hint="examples/ has some to start from")
    read = []
    for node in documents:
        document = Document(kind())
        document.lines[""] = node.start_mark.line + 1
        _Reader(source, document.lines).message(node, document.message, "", "")
        read.append(document)
    return read


class _Reader:
    """Walks YAML nodes along a message's descriptor."""

    def __init__(self, source: str, lines: dict[str, int]) -> None:
        self._source = source
        self._lines = lines

    def message(self, node: yaml.Node, into: Any, path: str, own: str) -> Any:
        """`path`: as it is written; `own`: in the contract's names."""
        fields = _fields(into.DESCRIPTOR)
        where = path or "the document"
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, where, f"must be a mapping with {_names(fields.values())}")
        seen: set[str] = set()
        for key, value in node.value:
            field = fields.get(str(key.value))
            place = f"{path}.{key.value}" if path else str(key.value)
            if field is None:
                raise self._unknown(key, place, fields)
            if field.name in seen:
                raise self._wrong(key, place, "is there twice")
            seen.add(field.name)
            name = f"{own}.{field.name}" if own else field.name
            self._lines[name] = key.start_mark.line + 1
            self._fill(value, into, field, place, name)
        return into

    def _fill(
        self, node: yaml.Node, into: Message, field: FieldDescriptor, path: str, own: str
    ) -> None:
        if _is_map(field):
            entries: dict[str, str] = getattr(into, field.name)
            entries.update(self._map(node, path))
        elif field.is_repeated:
            items = getattr(into, field.name)
            for index, item in enumerate(self._sequence(node, path)):
                place, name = f"{path}[{index}]", f"{own}[{index}]"
                self._lines[name] = item.start_mark.line + 1
                if field.message_type:
                    self.message(item, items.add(), place, name)
                else:
                    items.append(self._scalar(item, field, place))
        elif field.message_type and field.message_type.full_name == _DURATION:
            getattr(into, field.name).FromTimedelta(self._duration(node, path))
        elif field.message_type:
            inner = getattr(into, field.name)
            inner.SetInParent()
            if not (_is_null(node) and not _fields(field.message_type)):
                self.message(node, inner, path, own)
        else:
            setattr(into, field.name, self._scalar(node, field, path))

    def _map(self, node: yaml.Node, path: str) -> dict[str, str]:
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, path, "must be a mapping of strings")
        found = {}
        for key, value in node.value:
            if not isinstance(value, yaml.ScalarNode):
                raise self._wrong(value, f"{path}.{key.value}", "must be a string")
            found[str(key.value)] = str(value.value)
        return found

    def _sequence(self, node: yaml.Node, path: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._wrong(node, path, "must be a list (lines that start with `- `)")
        return list(node.value)

    def _scalar(self, node: yaml.Node, field: FieldDescriptor, path: str) -> Any:
        expected, convert, tags = _kind(field)
        if not isinstance(node, yaml.ScalarNode) or node.tag not in tags:
            raise self._wrong(node, path, f"must be {expected}")
        try:
            return convert(str(node.value))
        except (ValueError, KeyError):
            raise self._wrong(node, path, f"must be {expected}, not {node.value!r}") from None

    def _duration(self, node: yaml.Node, path: str) -> timedelta:
        expected = "must be a duration such as 90s, 15m or 2h"
        if not isinstance(node, yaml.ScalarNode) or node.tag not in (_STR, _INT, _FLOAT):
            raise self._wrong(node, path, expected)
        try:
            return timedelta(seconds=seconds(str(node.value)))
        except (ValueError, OverflowError):
            raise self._wrong(node, path, f"{expected}, not {node.value!r}") from None

    def _unknown(self, key: yaml.Node, path: str, fields: dict[str, FieldDescriptor]) -> BadInput:
        near = difflib.get_close_matches(str(key.value), fields, n=1)
        guess = f"did you mean `{near[0]}`? " if near else ""
        return self._error(
            key, f"unknown field `{path}`", f"{guess}allowed here: {_names(fields.values())}"
        )

    def _wrong(self, node: yaml.Node, path: str, problem: str) -> BadInput:
        return self._error(node, f"{path}: {problem}", None)

    def _error(self, node: yaml.Node, text: str, hint: str | None) -> BadInput:
        return BadInput(f"{self._source}, line {node.start_mark.line + 1}: {text}", hint=hint)


def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    """By both spellings: `wakeupProbe`, as JSON has it, and `wakeup_probe`, as the contract has it."""
    closed = _NOT_INPUT.get(descriptor.full_name, set())
    allowed = [field for field in descriptor.fields if field.name not in closed]
    return {f.json_name: f for f in allowed} | {f.name: f for f in allowed}


def _names(fields: Iterable[FieldDescriptor]) -> str:
    return ", ".join(dict.fromkeys(field.json_name for field in fields)) or "nothing ({})"


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def _kind(field: FieldDescriptor) -> tuple[str, Callable[[str], Any], tuple[str, ...]]:
    """What a scalar field takes: in words, its conversion, the YAML tags it may come with."""
    if field.enum_type:
        names = [v.name for v in field.enum_type.values if v.number]
        common = names[0].removesuffix(names[0].rsplit("_", 1)[-1])
        short = {name.removeprefix(common): name for name in names}
        numbers = field.enum_type.values_by_name

        def enum(text: str) -> int:
            return numbers[short.get(text, text)].number

        return f"one of {', '.join(short)}", enum, (_STR,)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "true or false", lambda text: text.lower() in ("true", "yes", "on"), (_BOOL,)
    if field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64):
        return "a whole number", _whole(field), (_INT,)
    return "a string", str, (_STR, _INT, _FLOAT, _BOOL)


def _whole(field: FieldDescriptor) -> Callable[[str], int]:
    bits = 31 if field.type == FieldDescriptor.TYPE_INT32 else 63

    def convert(text: str) -> int:
        number = int(text.replace("_", ""), 0)
        if abs(number) >= 1 << bits:
            raise ValueError(text)
        return number

    return convert
