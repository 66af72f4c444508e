"""No text makes the reader of the file, or the engine behind it, fail in another way than by its own error."""

import copy
import json
import re
from typing import Any

import pytest
import yaml
from atenet._engine import Router, check_name, parse_actor_ref
from atenet.agentgateway import ConfigFileError, Options, parse, router_config
from atenet.agentgateway.untranslatable import Untranslatable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.agentgateway.files import config, connect_binds, text

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
WHOLE = config(
    binds=connect_binds(cacheTtl="5s", requestParking={"budget": "5s", "max": 3}),
    config={"statsAddr": "localhost:0", "backend": {"connectTimeout": "1s"}},
    frontendPolicies={"tracing": {"host": "otel:4317", "randomSampling": 0.5}},
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a file."""
    below = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path] + [deep for key, item in below for deep in paths(item, (*path, key))]


PATHS = [path for path in paths(WHOLE) if path]


def translated(source: str) -> None:
    """Reads the text as the command does; only the documented errors may come out."""
    try:
        router = router_config(parse(source, "file.yaml"), Options("127.0.0.1"))
    except (ConfigFileError, Untranslatable):
        return
    Router(json.dumps(router))


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(PATHS), value=VALUES)
def test_any_value_at_any_place_is_read_or_refused(path: tuple[Any, ...], value: Any) -> None:
    data = copy.deepcopy(WHOLE)
    *parents, last = path
    place: Any = data
    for step in parents:
        place = place[step]
    place[last] = value
    translated(yaml.safe_dump(data))


@settings(max_examples=200, deadline=None)
@given(source=st.text(max_size=200))
def test_any_text_is_read_or_refused(source: str) -> None:
    translated(source)


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, len(text(WHOLE))), garbage=st.text(max_size=5))
def test_a_damaged_file_is_read_or_refused(at: int, garbage: str) -> None:
    whole = text(WHOLE)
    translated(whole[:at] + garbage + whole[at + len(garbage) :])


@settings(max_examples=300, deadline=None)
@given(
    value=VALUES | st.fixed_dictionaries({"listeners": VALUES, "control": VALUES, "worker": VALUES})
)
def test_the_engine_refuses_any_other_object_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match=": "):
        Router(json.dumps(value))


@settings(max_examples=500, deadline=None)
@given(
    value=st.text(alphabet="aZ0-/_. \t\n,é", max_size=8)
    | st.from_regex(r"[a-z0-9-]{1,70}/[a-z0-9-]{1,70}")
)
def test_a_reference_is_two_labels_and_nothing_else(value: str) -> None:
    halves = value.split("/")
    good = len(halves) == 2 and all(LABEL.fullmatch(half) for half in halves)
    if good:
        assert parse_actor_ref(value) == tuple(halves)
        for half in halves:
            check_name(half)
    else:
        with pytest.raises(ValueError, match="must"):
            parse_actor_ref(value)
