"""Whatever a caller sends: taken, or refused with the field's name; never another error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from atenet.ateapi.failure import CallError
from atenet.ateapi.validate import actor as actors
from atenet.ateapi.validate import egress_policy, paging
from atenet.ateapi.validate import template as templates
from atenet.ateapi.validate import worker as workers
from atenet.proto import ateapi_pb2 as pb
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_TEXT = st.text(max_size=80) | st.sampled_from(["", "/", "..", "a\0b", "a" * 5000, "spiffe://"])
_NUMBER = st.integers(min_value=-(2**31), max_value=2**31 - 1)


def _messages(kind: type[Message], depth: int = 3) -> st.SearchStrategy[Message]:
    """Any message of this kind, every field any value of its type."""
    fields = {f.name: _values(f, depth) for f in kind.DESCRIPTOR.fields if _fits(f, depth)}
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: kind(**given))


def _fits(field: FieldDescriptor, depth: int) -> bool:
    return field.message_type is None or depth > 0


def _values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        keys, values = inner.fields
        return st.dictionaries(_values(keys, 0), _values(values, 0), max_size=3)
    if inner is not None:
        one = _messages(message_factory.GetMessageClass(inner), depth - 1)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        one = _TEXT
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        one = st.booleans()
    else:
        one = _NUMBER if field.cpp_type != FieldDescriptor.CPPTYPE_ENUM else st.integers(0, 3)
    return st.lists(one, max_size=3) if field.is_repeated else one


_ROOTS = {
    *("actor", "actor_template", "worker", "capacity", "hosted_actor_uids", "egress_policy"),
}


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (actors.for_create, pb.Actor),
        (actors.for_update, pb.Actor),
        (templates.for_create, pb.ActorTemplate),
        (workers.for_register, pb.RegisterWorkerRequest),
        (workers.for_update, pb.Worker),
        (lambda given: egress_policy.for_create(given, "team-a"), pb.EgressPolicy),
    ],
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_comes_is_taken_or_refused_by_field(
    check: Callable[[Any], object], kind: type[Message], data: st.DataObject
) -> None:
    message = data.draw(_messages(kind))
    refusal = _refusal(lambda: check(message))
    if refusal is not None:
        assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
        root = re.split(r"[:.\[]", refusal.message)[0]
        assert root in _ROOTS


@given(st.text(max_size=200))
def test_any_page_token_is_taken_or_refused(token: str) -> None:
    refusal = _refusal(lambda: paging.page_start("actors", token, 2))
    assert refusal.message.startswith("page_token:") if refusal else not token


_KEYS = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=80)


@given(_KEYS, _KEYS)
def test_a_page_token_is_read_back(atespace: str, name: str) -> None:
    token = paging.page_token("actors", atespace, name)
    assert paging.page_start("actors", token, 2) == (atespace, name)
    with pytest.raises(CallError):
        paging.page_start("workers", token, 2)


def _refusal(check: Callable[[], object]) -> CallError | None:
    try:
        check()
    except CallError as e:
        return e
    return None
