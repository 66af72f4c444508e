"""A YAML file with the line of each key, so that an error can point at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

__all__ = ["Source", "SourceError"]

Path = Sequence[str | int]


class SourceError(Exception):
    """The text is no YAML mapping. `line` counts from 1."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class Source:
    """Parsed text. `data` is plain dicts, lists and scalars."""

    def __init__(self, text: str) -> None:
        """Raises SourceError: not YAML, not one mapping, or a key that stands twice."""
        try:
            loader = yaml.SafeLoader(text)
            self._root = loader.get_single_node()
            self.data: dict[str, Any] = {} if self._root is None else self._construct(loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise SourceError(
                error.problem or "not YAML", mark.line + 1 if mark else None
            ) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise SourceError(f"not text: character #x{error.character:04x}", line) from error
        except (ValueError, RecursionError) as error:
            # Scalars that look like dates or numbers and are none; nesting without end.
            raise SourceError(f"not YAML: {error}") from error

    def _construct(self, loader: yaml.SafeLoader) -> dict[str, Any]:
        if not isinstance(self._root, yaml.MappingNode):
            raise SourceError("must be a mapping", 1)
        _refuse_twins(self._root)
        data: dict[str, Any] = loader.construct_document(self._root)
        return data

    def line(self, path: Path) -> int | None:
        """The line of the deepest part of `path` that the file has."""
        node, line = self._root, None
        for step in path:
            found = _child(node, step)
            if found is None:
                return line
            mark, node = found
            line = mark.line + 1
        return line


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark to show for one step, and the node below it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _refuse_twins(node: Any) -> None:
    """YAML forbids a key twice, PyYAML takes the last one: the first would be lost unseen."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_twins(item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise SourceError(
                        f"the key `{key.value}` stands twice", key.start_mark.line + 1
                    )
                seen.add(key.value)
            _refuse_twins(value)
