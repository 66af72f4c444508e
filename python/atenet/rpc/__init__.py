"""gRPC over mutual TLS whose certificates are files that may change under a running process."""

from atenet.rpc.channel import MtlsChannel, mtls_channel
from atenet.rpc.fronted import fronted_auth_context, fronted_server
from atenet.rpc.server import (
    MtlsServer,
    also_without_certificates,
    dns_names_in,
    mtls_server,
    peer_spiffe_id,
    spiffe_id_in,
)

__all__ = [
    "MtlsChannel",
    "MtlsServer",
    "also_without_certificates",
    "dns_names_in",
    "fronted_auth_context",
    "fronted_server",
    "mtls_channel",
    "mtls_server",
    "peer_spiffe_id",
    "spiffe_id_in",
]
