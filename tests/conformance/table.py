"""Reads docs/conformance.md and what the tests say of it, without running anything."""

import ast
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "conformance.md"
PENDING = Path(__file__).with_name("pending.txt")

_ROW = re.compile(r"^\| (?P<id>[ITEC]-\d{2}) \| (?P<rest>.*)$")
_DATAPLANES = {"A": {"agentgateway"}, "E": {"envoy"}, "AE": {"agentgateway", "envoy"}}


def rows(text: str) -> dict[str, set[str]]:
    """Each id and the dataplanes that the row binds; empty: none in particular."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if match := _ROW.match(line):
            assert match["id"] not in found, f"{match['id']} stands twice in the table"
            found[match["id"]] = _DATAPLANES.get(match["rest"].split(" | ")[0], set())
    return found


def pending(text: str) -> dict[str, str]:
    """`<id> <reason>` a line; `#` starts a comment."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            row, _, reason = line.partition(" ")
            assert reason.strip(), f"{row} waits without a reason"
            assert row not in found, f"{row} waits twice"
            found[row] = reason.strip()
    return found


@dataclass
class Claim:
    """A test function that names rows."""

    name: str
    rows: set[str] = field(default_factory=set)
    only: set[str] = field(default_factory=set)


def claims(source: str, path: str) -> Iterator[Claim]:
    """Every test that names rows, with the marks of its module and class."""
    # Python 3.11 cannot parse while it parses, and what the collector finds may print a traceback, which does.
    collecting = gc.isenabled()
    gc.disable()
    try:
        module = ast.parse(source, path)
    finally:
        if collecting:
            gc.enable()
    yield from _claims(module.body, path, Claim(path))


def _claims(body: list[ast.stmt], path: str, outer: Claim) -> Iterator[Claim]:
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            marks = node.value.elts if isinstance(node.value, ast.List) else [node.value]
            outer = _marked(outer.name, marks, outer)
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _claims(
                node.body, path, _marked(f"{path}::{node.name}", node.decorator_list, outer)
            )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            claim = _marked(f"{path}::{node.name}", node.decorator_list, outer)
            own = _marked(node.name, node.decorator_list, Claim(node.name))
            if node.name.startswith("test_") and claim.rows:
                yield claim
            else:
                assert not own.rows, f"{path}::{node.name} names rows but is no test"


def _marked(name: str, decorators: list[ast.expr], outer: Claim) -> Claim:
    claim = Claim(name, set(outer.rows), set(outer.only))
    for mark in decorators:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute):
            words = {
                arg.value
                for arg in mark.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            }
            if mark.func.attr == "conformance":
                claim.rows |= words
            elif mark.func.attr == "only":
                claim.only |= words
    return claim


def all_claims() -> list[Claim]:
    """The claims of every test file of the repository."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        claim for file in files for claim in claims(file.read_text(), str(file.relative_to(ROOT)))
    ]
