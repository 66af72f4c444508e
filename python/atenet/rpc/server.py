"""A grpc.aio server that requires client certificates and re-reads its own per handshake."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio

from atenet.errors import AteError
from atenet.rpc.keepalive import SERVER_OPTIONS
from atenet.rpc.material import WatchedMaterial

__all__ = [
    "MtlsServer",
    "also_without_certificates",
    "dns_names_in",
    "mtls_server",
    "peer_spiffe_id",
    "spiffe_id_in",
]


@dataclass(frozen=True)
class MtlsServer:
    """`server` takes handlers until it is started; `address` is what was bound (`host:port`)."""

    server: grpc.aio.Server
    address: str


# gRPC cannot switch session tickets off. A resumed session carries its client's identity, but
# nobody looks at the certificate's expiry again; a new configuration makes old tickets worthless.
_TICKET_SECONDS = 600.0


class _HasAuthContext(Protocol):
    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...


def mtls_server(
    address: str,
    *,
    credential: Path,
    client_roots: Path,
    options: Sequence[tuple[str, Any]] = (),
    interceptors: Sequence[Any] = (),
) -> MtlsServer:
    """Binds `address` (`host:port`, port 0 = any free one); call `.server.start()` to serve.

    A client without a certificate that chains to `client_roots` fails in the handshake. Both
    files are looked at again on each handshake. Raises AteError when a file is unusable or the
    address is taken.
    """
    server = grpc.aio.server(
        options=[*SERVER_OPTIONS, *options], interceptors=list(interceptors) or None
    )
    credentials = _credentials(credential, client_roots, mutual=True)
    return MtlsServer(server, _bind(server, address, credentials))


def also_without_certificates(
    server: grpc.aio.Server, address: str, *, credential: Path, roots: Path
) -> str:
    """Binds another address of a server, where clients show no certificate: whatever they
    may do there they must prove in another way. `roots` are not used to verify anybody.

    Returns the bound address. Raises AteError.
    """
    return _bind(server, address, _credentials(credential, roots, mutual=False))


def _credentials(credential: Path, roots: Path, *, mutual: bool) -> grpc.ServerCredentials:
    source = _Configurations(WatchedMaterial(credential, roots))
    return grpc.dynamic_ssl_server_credentials(
        source.current(),
        source.fetch,  # type: ignore[arg-type]  # None is "unchanged"; gRPC's stubs do not say so
        require_client_authentication=mutual,
    )


def peer_spiffe_id(context: _HasAuthContext) -> str | None:
    """The client's id if its certificate has exactly one URI name, else None."""
    return spiffe_id_in(context.auth_context())


def spiffe_id_in(auth_context: Mapping[str, Iterable[bytes]]) -> str | None:
    """The same of a call's authentication context, which gRPC makes anew each time it is asked.

    The value is compared, never parsed leniently: another spelling is another id.
    """
    uris = list(auth_context.get("peer_uri", ()))
    if len(uris) != 1:
        return None
    try:
        return uris[0].decode("ascii")
    except UnicodeDecodeError:
        return None


def dns_names_in(auth_context: Mapping[str, Iterable[bytes]]) -> list[str]:
    """The DNS names of the client's certificate; what is not ASCII is no name."""
    return [name.decode() for name in auth_context.get("peer_dns", ()) if name.isascii()]


class _Configurations:
    """Asked by gRPC before each handshake, on one of its threads."""

    def __init__(self, watched: WatchedMaterial) -> None:
        self._watched = watched
        self._renewed = time.monotonic()

    def current(self) -> grpc.ServerCertificateConfiguration:
        material = self._watched.current
        return grpc.ssl_server_certificate_configuration(
            [(material.key, material.chain)], root_certificates=material.roots
        )

    def fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """A configuration if a file changed or the last one is old, else None."""
        now = time.monotonic()
        if not self._watched.refresh() and now - self._renewed < _TICKET_SECONDS:
            return None
        self._renewed = now
        return self.current()


def _bind(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials) -> str:
    host = address.rpartition(":")[0]
    try:
        port = server.add_secure_port(address, credentials)
    except RuntimeError as e:
        port = 0
        cause: Exception | None = e
    else:
        cause = None
    if not host or port == 0:
        raise AteError(
            f"cannot listen on {address}",
            hint="is the port taken by another process, or the address not of this machine?",
        ) from cause
    return f"{host}:{port}"
