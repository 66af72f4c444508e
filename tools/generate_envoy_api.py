#!/usr/bin/env python3
"""Writes python/atenet/router/envoy_api.binpb.gz: descriptors of the part of Envoy's API that the router uses.

They come from the package xds-protos, which cannot be installed beside ours: it overwrites files of
opentelemetry-proto and googleapis-common-protos with older ones. So it is installed into an environment of its own,
read there, and what the router needs is kept as descriptors.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = "xds-protos==1.85.0"
OUT = Path(__file__).resolve().parent.parent / "python" / "atenet" / "router" / "envoy_api.binpb.gz"

MODULES = (
    "envoy.config.bootstrap.v3.bootstrap_pb2",
    "envoy.config.cluster.v3.cluster_pb2",
    "envoy.config.listener.v3.listener_pb2",
    "envoy.config.rbac.v3.rbac_pb2",
    "envoy.config.trace.v3.opentelemetry_pb2",
    "envoy.extensions.access_loggers.filters.cel.v3.cel_pb2",
    "envoy.extensions.access_loggers.stream.v3.stream_pb2",
    "envoy.extensions.bootstrap.internal_listener.v3.internal_listener_pb2",
    "envoy.extensions.clusters.dynamic_forward_proxy.v3.cluster_pb2",
    "envoy.extensions.filters.http.ext_proc.v3.ext_proc_pb2",
    "envoy.extensions.filters.http.header_mutation.v3.header_mutation_pb2",
    "envoy.extensions.filters.http.lua.v3.lua_pb2",
    "envoy.extensions.filters.http.router.v3.router_pb2",
    "envoy.extensions.filters.http.set_filter_state.v3.set_filter_state_pb2",
    "envoy.extensions.filters.http.upstream_codec.v3.upstream_codec_pb2",
    "envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2",
    "envoy.extensions.filters.network.rbac.v3.rbac_pb2",
    "envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.sni_dynamic_forward_proxy_pb2",
    "envoy.extensions.filters.network.tcp_proxy.v3.tcp_proxy_pb2",
    "envoy.extensions.http.early_header_mutation.header_mutation.v3.header_mutation_pb2",
    "envoy.extensions.matching.common_inputs.ssl.v3.ssl_inputs_pb2",
    "envoy.extensions.request_id.uuid.v3.uuid_pb2",
    "envoy.extensions.resource_monitors.downstream_connections.v3.downstream_connections_pb2",
    "envoy.extensions.resource_monitors.injected_resource.v3.injected_resource_pb2",
    "envoy.extensions.transport_sockets.internal_upstream.v3.internal_upstream_pb2",
    "envoy.extensions.transport_sockets.raw_buffer.v3.raw_buffer_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_pb2",
    "envoy.extensions.upstreams.http.v3.http_protocol_options_pb2",
    "envoy.service.discovery.v3.discovery_pb2",
    "envoy.service.ext_proc.v3.external_processor_pb2",
)

# Runs inside the other environment; prints a FileDescriptorSet, every file after those that it imports.
READER = """
import importlib, sys
from google.protobuf import descriptor_pb2
files = {}
def add(descriptor):
    if descriptor.name in files:
        return
    for dependency in descriptor.dependencies:
        add(dependency)
    files[descriptor.name] = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(files[descriptor.name])
for module in sys.argv[1:]:
    add(importlib.import_module(module).DESCRIPTOR)
sys.stdout.buffer.write(descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString(deterministic=True))
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = Path(scratch, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE], check=True)
        made = subprocess.run(
            [python, "-c", READER, *MODULES], check=True, capture_output=True
        ).stdout
    OUT.write_bytes(gzip.compress(made, mtime=0))
    print(f"{OUT.name}: {len(made)} bytes, {OUT.stat().st_size} compressed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
