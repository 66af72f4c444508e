"""gRPC over mutual TLS whose certificates are files that may change under a running process."""

from atenet.rpc.channel import MtlsChannel, mtls_channel
from atenet.rpc.server import (
    MtlsServer,
    also_without_certificates,
    mtls_server,
    peer_dns_names,
    peer_spiffe_id,
)

__all__ = [
    "MtlsChannel",
    "MtlsServer",
    "also_without_certificates",
    "mtls_channel",
    "mtls_server",
    "peer_dns_names",
    "peer_spiffe_id",
]
