"""One activation's network as a worker makes it, with the engine's egress end in it; the test is the actor."""

import asyncio
import json
import secrets
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from atenet import _engine
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.network import GATEWAY_ADDRESS, Capturing, NetworkPair, netns
from atenet.worker.network.pair import build, demolish
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from google.protobuf.json_format import ParseDict

from tests.support.actor_box import new_prefix
from tests.support.egress_pki import GATEWAY_NAME, EgressPki, tunnel_id
from tests.support.raw_http1 import RawHttp1

_T = TypeVar("_T")
RELAY = (GATEWAY_ADDRESS, 53)
CAPTURE_PORT = 15001


class CapturedActor:
    """`dial` and `datagrams` are made inside the actor's namespace."""

    def __init__(self, network: NetworkPair, capture: _engine.Capture, name: str) -> None:
        self.network = network
        self.engine = capture
        self.ref = name
        self.uid = f"uid-{secrets.token_hex(6)}"

    def open(self, gateway: str | None) -> None:
        atespace, name = self.ref.split("/")
        where = str(self.network.gateway_path)
        self.engine.open(atespace, name, self.uid, netns=where, gateway=gateway)

    def certify(
        self, pki: EgressPki, *, bundle: bytes | None = None, not_after: float | None = None
    ) -> None:
        """A tunnel certificate, as the control plane mints it; `not_after`: what the engine is told."""
        bundle = bundle or pki.actors.issue(uris=[tunnel_id(self.ref)])
        key = serialization.load_pem_private_key(bundle, None).private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        leaf = x509.load_pem_x509_certificate(bundle)
        ends = leaf.not_valid_after_utc.timestamp() if not_after is None else not_after
        chain = [leaf.public_bytes(serialization.Encoding.DER)]
        self.engine.set_credential(self.uid, chain=chain, key=key, not_after=ends)

    def allow(self, *rules: dict[str, Any]) -> None:
        policy = ParseDict({"rules": list(rules)}, pb.EgressPolicy())
        self.engine.set_policy(self.uid, policy.SerializeToString())

    async def close(self) -> bool:
        return await asyncio.to_thread(self.engine.close_actor, self.uid)

    def numbers(self) -> dict[str, Any]:
        [found] = [a for a in json.loads(self.engine.stats())["actors"] if a["uid"] == self.uid]
        return dict(found)

    async def dial(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        name: str | None = None,
        family: socket.AddressFamily = socket.AF_INET,
    ) -> RawHttp1:
        """A connection of the actor's, with its resets and halves as they are."""
        sock = self.inside(lambda: socket.socket(family, socket.SOCK_STREAM))
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except OSError:
            sock.close()
            raise
        reader, writer = await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=name)
        return RawHttp1(reader, writer)

    def datagrams(self, *, kind: int = socket.SOCK_DGRAM, protocol: int = 0) -> socket.socket:
        sock = self.inside(lambda: socket.socket(socket.AF_INET, kind, protocol))
        sock.setblocking(False)
        return sock

    def inside(self, make: Callable[[], _T]) -> _T:
        """What `make` makes on a thread inside the actor's namespace."""

        def entered() -> _T:
            with netns.own_namespace_kept():
                netns.enter(self.network.runtime)
                return make()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(entered).result()


class CapturedWorker:
    """One engine with as many actors as a test needs."""

    def __init__(self, engine: _engine.Capture, refused: tuple[str, ...]) -> None:
        self.engine = engine
        self._capturing = Capturing(CAPTURE_PORT, refused)
        self._prefix = new_prefix()
        self.networks: list[NetworkPair] = []

    def actor(self, name: str = "team/agent") -> CapturedActor:
        network = build(f"{self._prefix}{len(self.networks)}", self._capturing)
        self.networks.append(network)
        return CapturedActor(network, self.engine, name)


@contextmanager
def captured_worker(
    pki: EgressPki | None, *, refused: tuple[str, ...] = (), **settings: Any
) -> Iterator[CapturedWorker]:
    """`settings`: of the engine's configuration; `pki`: None for a worker without a gateway."""
    config = {"address": GATEWAY_ADDRESS, "capture_port": CAPTURE_PORT, "threads": 2, **settings}
    if pki is not None:
        trust = {"trust_bundle": str(pki.pki.service_roots), "server_name": GATEWAY_NAME}
        config.setdefault("gateway", trust)
    engine = _engine.Capture(json.dumps(config))
    worker = CapturedWorker(engine, refused)
    try:
        yield worker
    finally:
        engine.close()
        for network in worker.networks:
            demolish(network)


class ScriptedGateway:
    """An egress gateway that takes every certificate of the actor authority and does as it is told."""

    def __init__(self, pki: EgressPki, *, names: tuple[str, ...] = (GATEWAY_NAME,)) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        bundle = pki.pki.write(f"gw-{secrets.token_hex(4)}.pem", pki.pki.services.issue(dns=names))
        self.context.load_cert_chain(bundle)
        self.context.load_verify_locations(pki.actor_roots)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.connections = 0
        self.heads: list[bytes] = []
        self.certificates: list[x509.Certificate] = []
        self.tunnels: asyncio.Queue[RawHttp1] = asyncio.Queue()
        self.answer = b"HTTP/1.1 200 OK\r\n\r\n"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def start(self) -> "ScriptedGateway":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def tunnel(self) -> RawHttp1:
        """The next one that was opened, from the gateway's side."""
        async with asyncio.timeout(10):
            return await self.tunnels.get()

    def uris(self) -> list[str]:
        """Who opened tunnels, in their order."""
        names = []
        for certificate in self.certificates:
            san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            names += san.value.get_values_for_type(x509.UniformResourceIdentifier)
        return names

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        while not self.tunnels.empty():
            self.tunnels.get_nowait().writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        shown = tls.getpeercert(binary_form=True)
        assert shown is not None
        self.certificates.append(x509.load_der_x509_certificate(shown))
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        await writer.drain()
        await self.tunnels.put(RawHttp1(reader, writer))
