"""Server and channel over real TLS: who gets in, and what happens when files change."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from atenet.errors import AteError
from atenet.identity import Authority, LocalIdentity, spiffe
from atenet.identity.files import write_public
from atenet.identity.pem import certificate_pem
from atenet.rpc import MtlsChannel, mtls_channel, mtls_server, peer_spiffe_id
from grpc.experimental import session_cache

from tests.support.issue import odd_credential


class Served:
    """A server that answers with the id it saw."""

    def __init__(self, identity: LocalIdentity) -> None:
        self.identity = identity
        self.credential = identity.service_credential("ateapi", [spiffe.API_SERVER_NAME])
        self.roots = identity.trust("pod-identity")
        self.reused: list[str] = []
        self._channels: list[MtlsChannel] = []

    async def start(self) -> None:
        async def who(_request: bytes, context: Any) -> bytes:
            self.reused += [v.decode() for v in context.auth_context()["ssl_session_reused"]]
            return (peer_spiffe_id(context) or "nobody").encode()

        made = mtls_server("127.0.0.1:0", credential=self.credential, client_roots=self.roots)
        handler = grpc.unary_unary_rpc_method_handler(who)
        made.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("t.T", {"Who": handler}),)
        )
        await made.server.start()
        self.address, self._server = made.address, made.server

    def channel(self, credential: Path, **given: Any) -> MtlsChannel:
        wanted: dict[str, Any] = {
            "roots": self.identity.trust("service-dns"),
            "server_name": spiffe.API_SERVER_NAME,
        }
        made = mtls_channel(self.address, credential=credential, **(wanted | given))
        self._channels.append(made)
        return made

    async def who(self, credential: Path, **given: Any) -> str:
        return await ask(self.channel(credential, **given))

    async def stop(self) -> None:
        for channel in self._channels:
            await channel.close()
        await self._server.stop(0)


async def ask(channel: MtlsChannel) -> str:
    try:
        answer: bytes = await channel.unary_unary("/t.T/Who")(b"", timeout=5)
    except grpc.aio.AioRpcError as e:
        return e.code().name
    return answer.decode()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    identity = LocalIdentity(tmp_path / "state")
    identity.ensure()
    made = Served(identity)
    await made.start()
    yield made
    await made.stop()


async def test_the_server_knows_its_client(served: Served) -> None:
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    assert await served.who(credential) == spiffe.ROUTER_ID


@pytest.mark.parametrize(
    "uris",
    [
        [spiffe.ROUTER_ID, spiffe.EGRESS_ID],
        [spiffe.ROUTER_ID, "https://example.com"],
        [],
    ],
)
async def test_not_exactly_one_uri_is_nobody(served: Served, uris: list[str]) -> None:
    odd = odd_credential(
        served.identity.root / "odd.pem",
        served.identity.authority("pod-identity"),
        uris=uris,
        dns=["atenet-router.ate-system.pod.cluster.local"],
    )
    assert await served.who(odd) == "nobody"


async def test_a_client_of_a_foreign_authority_fails_in_the_handshake(served: Served) -> None:
    foreign = odd_credential(
        served.identity.root / "odd.pem", Authority.create("pods"), uris=[spiffe.ROUTER_ID]
    )
    assert await served.who(foreign) == "UNAVAILABLE"


async def test_an_expired_client_fails_in_the_handshake(served: Served) -> None:
    expired = odd_credential(
        served.identity.root / "odd.pem",
        served.identity.authority("pod-identity"),
        uris=[spiffe.ROUTER_ID],
        age=timedelta(hours=2),
    )
    assert await served.who(expired) == "UNAVAILABLE"


async def test_a_certificate_for_servers_does_not_make_a_client(served: Served) -> None:
    wrong = odd_credential(
        served.identity.root / "odd.pem",
        served.identity.authority("pod-identity"),
        uris=[spiffe.ROUTER_ID],
        server_only=True,
    )
    assert await served.who(wrong) == "UNAVAILABLE"


async def test_a_client_without_a_certificate_fails_in_the_handshake(served: Served) -> None:
    roots = served.identity.trust("service-dns").read_bytes()
    async with grpc.aio.secure_channel(
        served.address,
        grpc.ssl_channel_credentials(roots),
        options=[("grpc.ssl_target_name_override", spiffe.API_SERVER_NAME)],
    ) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/t.T/Who")(b"", timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_the_client_pins_the_server_s_name(served: Served) -> None:
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    name = spiffe.ROUTER_SERVER_NAME
    assert await served.who(credential, server_name=name) == "UNAVAILABLE"


async def test_a_pod_is_pinned_by_the_name_of_its_id(served: Served) -> None:
    served.credential = served.identity.credential("atelet", spiffe.ATELET_ID)
    await served.stop()
    await served.start()
    roots = served.identity.trust("pod-identity")
    mine = served.identity.credential("ateapi", spiffe.API_ID)
    for pinned, answer in (
        (spiffe.ATELET_ID, spiffe.API_ID),
        (spiffe.pod_id("default", "local"), "UNAVAILABLE"),
    ):
        name = spiffe.pod_dns_name(pinned)
        assert await served.who(mine, roots=roots, server_name=name) == answer


async def test_a_renewed_client_certificate_is_used_without_a_new_channel(served: Served) -> None:
    path = served.identity.credential("x", spiffe.ROUTER_ID)
    channel = served.channel(path)
    assert await ask(channel) == spiffe.ROUTER_ID
    served.identity.credential("x", spiffe.EGRESS_ID)
    await _until(channel, spiffe.EGRESS_ID)


async def test_a_call_in_flight_survives_the_renewal(served: Served) -> None:
    path = served.identity.credential("x", spiffe.ROUTER_ID)
    channel = served.channel(path)
    old = channel.current()
    running = [asyncio.ensure_future(ask(channel)) for _ in range(20)]
    served.identity.credential("x", spiffe.EGRESS_ID)
    await _until(channel, spiffe.EGRESS_ID)
    assert channel.current() is not old
    assert set(await asyncio.gather(*running)) <= {spiffe.ROUTER_ID, spiffe.EGRESS_ID}


# B137
async def test_the_server_s_new_roots_hold_for_the_next_handshake(served: Served) -> None:
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    assert await served.who(credential) == spiffe.ROUTER_ID
    other = Authority.create("pods")
    write_public(served.roots, certificate_pem(other.certificate))
    assert await served.who(credential, options=[("a", 1)]) == "UNAVAILABLE"
    newcomer = odd_credential(served.identity.root / "n.pem", other, uris=[spiffe.EGRESS_ID])
    assert await served.who(newcomer) == spiffe.EGRESS_ID
    both = [other.certificate, served.identity.authority("pod-identity").certificate]
    write_public(served.roots, certificate_pem(*both))
    assert await served.who(credential, options=[("a", 2)]) == spiffe.ROUTER_ID
    assert await served.who(newcomer, options=[("a", 3)]) == spiffe.EGRESS_ID


async def test_a_bundle_written_half_leaves_the_old_one_in_force(served: Served) -> None:
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    whole = served.credential.read_bytes()
    served.credential.write_bytes(whole[: len(whole) // 2])
    assert await served.who(credential, options=[("a", 1)]) == spiffe.ROUTER_ID
    served.credential.write_bytes(whole)
    assert await served.who(credential, options=[("a", 2)]) == spiffe.ROUTER_ID


# B135
async def test_a_resumed_session_keeps_its_identity(served: Served) -> None:
    cache = session_cache.ssl_session_cache_lru(4)
    option = ("grpc.ssl_session_cache", cache)
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    for index in range(2):
        who = await served.who(credential, options=[option, ("a", index)])
        assert who == spiffe.ROUTER_ID
    assert served.reused == ["false", "true"]


# B135
async def test_a_resumed_session_is_not_let_in_after_its_authority_is_gone(served: Served) -> None:
    context = ssl.create_default_context(cafile=str(served.identity.trust("service-dns")))
    context.load_cert_chain(served.identity.credential("router", spiffe.ROUTER_ID))
    context.set_alpn_protocols(["h2"])

    def connect(session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        host, _, port = served.address.rpartition(":")
        plain = socket.create_connection((host, int(port)), 5)
        with context.wrap_socket(
            plain, server_hostname=spiffe.API_SERVER_NAME, session=session
        ) as tls:
            tls.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            assert tls.recv(9), "the server spoke: it accepted the client"
            return tls.session

    ticket = await asyncio.to_thread(connect, None)
    write_public(served.roots, certificate_pem(Authority.create("pods").certificate))
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        await asyncio.to_thread(connect, ticket)


async def test_a_taken_port_is_an_error(served: Served) -> None:
    with pytest.raises(AteError, match="cannot listen on"):
        mtls_server(served.address, credential=served.credential, client_roots=served.roots)


async def test_unusable_files_are_named(served: Served, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    write_public(empty, b"")
    credential = served.identity.credential("router", spiffe.ROUTER_ID)
    with pytest.raises(AteError, match="empty"):
        mtls_server("127.0.0.1:0", credential=credential, client_roots=empty)
    with pytest.raises(AteError, match=r"nowhere\.pem"):
        served.channel(tmp_path / "nowhere.pem")


async def _until(channel: MtlsChannel, answer: str) -> None:
    async with asyncio.timeout(5):
        while await ask(channel) != answer:  # noqa: ASYNC110 - files are looked at by time
            await asyncio.sleep(0.05)
