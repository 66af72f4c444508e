"""The definition of WorkerPool: a structural schema that follows the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from atenet.controller.definition import crd
from atenet.controller.pool import Strategy, WorkerPoolSpec
from pydantic import ValidationError


def _spec() -> dict[str, Any]:
    version = crd()["spec"]["versions"][0]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from _nodes(child)


def test_no_word_is_left_that_a_structural_schema_does_not_know() -> None:
    foreign = {"$ref", "$defs", "propertyNames", "const", "exclusiveMinimum", "oneOf", "allOf"}
    for node in _nodes(_spec()):
        assert not foreign & node.keys(), node
        assert {"type": "null"} not in node.get("anyOf", [])
        assert node.get("additionalProperties") is not False


def test_every_field_of_the_model_is_in_it_by_the_name_that_people_write() -> None:
    assert set(_spec()["properties"]) == {
        field.alias for field in WorkerPoolSpec.model_fields.values()
    }


def test_an_absent_member_has_its_own_defaults() -> None:
    assert _spec()["properties"]["strategy"]["default"] == {
        "maxSurge": 1,
        "maxUnavailable": 0,
    }
    assert WorkerPoolSpec().strategy == Strategy(max_surge=1, max_unavailable=0)


def test_a_key_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValidationError, match="replica"):
        WorkerPoolSpec.model_validate({"replica": 3})
