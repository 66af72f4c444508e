"""Whatever is sent to whatever method: an answer of the contract, never an internal error."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.support.control_plane import ControlPlane, control_plane

_NAMES = ["", "a", "b", "tpl", "team-a", "worker-1", "default", "A", "a/b", "a\0", "x" * 64, "é"]
_NUMBERS = [0, 1, 2, -1, 80, 300, 65536, 2**31 - 1, -(2**31)]
_CODES = {
    *("OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION", "ABORTED"),
    *("RESOURCE_EXHAUSTED", "PERMISSION_DENIED"),
}
_METHODS = [
    (service.full_name, method)
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if not method.server_streaming
]
_CALLS = 12


def _message(kind: type[Message], chance: random.Random, depth: int = 4) -> Message:
    """A message whose fields are set by chance: names that exist, and values that nobody sends."""
    made: Any = kind()
    for field in kind.DESCRIPTOR.fields:
        if chance.random() < 0.25 or (field.message_type and depth == 0):
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type:
            inner = message_factory.GetMessageClass(field.message_type)
            one = _message(inner, chance, depth - 1)
            if field.is_repeated:
                getattr(made, field.name).append(one)
            else:
                getattr(made, field.name).CopyFrom(one)
        elif field.is_repeated:
            getattr(made, field.name).extend([_value(field, chance)] * chance.randint(0, 3))
        else:
            setattr(made, field.name, _value(field, chance))
    return made


def _value(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        word = chance.choice(_NAMES)
        return word.encode() if field.type == FieldDescriptor.TYPE_BYTES else word
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    number = chance.choice(_NUMBERS)
    return number % 12 if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM else number


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with control_plane(tmp_path) as made:
        ca = made.identity.root / "ca"
        async with made.in_process(
            issuer="https://issuer.example",
            actor_ca_cert=ca / "actor-identity.crt",
            actor_ca_key=ca / "actor-identity.key",
        ):
            await made.seed("a", "b")
            await made.register()
            yield made


@pytest.mark.conformance("C-08")
@pytest.mark.parametrize("seed", range(4))
async def test_no_request_makes_an_internal_error(plane: ControlPlane, seed: int) -> None:
    chance = random.Random(seed)
    person, gateway = plane.channel("ate-cli", spiffe.CLI_ID), plane.channel("gw", spiffe.EGRESS_ID)
    agent = plane.channel("atelet-node-1", spiffe.ATELET_ID, node="node-1")
    for service, method in chance.sample(_METHODS, len(_METHODS)):
        caller = agent if service == "ateapi.WorkerService" else person
        caller = gateway if method.name in ("MintActorJWT", "MintActorCertificate") else caller
        call = caller.unary_unary(f"/{service}/{method.name}")
        kind = message_factory.GetMessageClass(method.input_type)
        for _ in range(_CALLS):
            request = _message(kind, chance)
            try:
                await call(request.SerializeToString(), timeout=20)
                code = "OK"
            except grpc.aio.AioRpcError as e:
                code = e.code().name
            assert code in _CODES, f"{method.name}: {code} for {request}"
