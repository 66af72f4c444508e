"""One request to an actor through the router, against real sockets."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from atenet.client import RouterRequest, exchange
from atenet.client.request import SERVER_NAME, ClientTls
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.identity.local import LocalIdentity
from atenet.local.layout import Layout

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: 1\r\nx-a: 2\r\n\r\nhi"


class Router:
    """Answers each head it reads with the next of its answers; keeps what it read."""

    def __init__(self, answers: list[bytes], context: ssl.SSLContext | None = None) -> None:
        self.heads: list[bytes] = []
        self._answers, self._context = answers, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        opened, _ = self._listener.accept()
        try:
            if self._context is not None:
                opened = self._context.wrap_socket(opened, server_side=True)
            with opened, opened.makefile("rb") as lines:
                for answer in self._answers:
                    head = b""
                    while not head.endswith(b"\r\n\r\n"):
                        head += lines.readline()
                    self.heads.append(head)
                    opened.sendall(answer)
        except (OSError, ssl.SSLError):
            opened.close()

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()


@contextmanager
def router(*answers: bytes, context: ssl.SSLContext | None = None) -> Iterator[Router]:
    made = Router(list(answers), context)
    try:
        yield made
    finally:
        made.close()


def test_the_header_names_the_actor_and_repeated_headers_are_kept() -> None:
    request = RouterRequest(actor="demo/one", path="/x?y=1")
    with router(OK) as end, exchange(end.address, request, None, 5) as answer:
        assert answer.status == 200
        assert answer.read() == b"hi"
        assert [v for n, v in answer.headers if n == "x-a"] == ["1", "2"]
    assert end.heads[0].startswith(b"GET /x?y=1 HTTP/1.1\r\n")
    assert b"ate-target-actor: demo/one\r\n" in end.heads[0]
    assert end.heads[0].count(b"Host: ") == 1


def test_what_the_caller_says_wins_over_our_own() -> None:
    headers = (("host", "shop.example"), ("ate-target-actor", "other/one"))
    request = RouterRequest(actor="demo/one", headers=headers)
    with router(OK) as end, exchange(end.address, request, None, 5) as answer:
        answer.read()
    assert b"host: shop.example\r\n" in end.heads[0]
    assert b"ate-target-actor: other/one\r\n" in end.heads[0]
    assert b"demo" not in end.heads[0]


def test_another_port_is_reached_through_a_connect_that_carries_the_name() -> None:
    connected = b"HTTP/1.1 200 Connection Established\r\n\r\n"
    request = RouterRequest(actor="demo/one", port=8080)
    with router(connected, OK) as end, exchange(end.address, request, None, 5) as answer:
        assert answer.read() == b"hi"
    outer, inner = end.heads
    assert outer.startswith(b"CONNECT actor:8080 HTTP/1.1\r\n")
    assert b"ate-target-actor: demo/one\r\n" in outer
    assert b"ate-target-actor" not in inner


def test_a_refused_connect_says_the_routers_reason() -> None:
    refusal = (
        b"HTTP/1.1 404 Not Found\r\nate-reason: actor-not-found\r\n"
        b"content-length: 14\r\n\r\nno such actor\n"
    )
    request = RouterRequest(actor="demo/nobody", port=8080)
    with router(refusal) as end, pytest.raises(AteError, match="404 Not Found") as caught:
        exchange(end.address, request, None, 5)
    assert "no such actor" in str(caught.value)
    assert end.heads


def test_an_answer_cut_short_is_an_error_not_an_end() -> None:
    short = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"
    request = RouterRequest(actor="demo/one")
    with router(short) as end, exchange(end.address, request, None, 5) as answer:
        blocks = answer.blocks()
        assert next(blocks) == b"only this"
        with pytest.raises(AteError, match="cut short: 91 bytes"):
            next(blocks)


def test_the_router_must_prove_its_name(tmp_path: Path) -> None:
    identity = LocalIdentity(tmp_path / "state")
    identity.ensure()
    request = RouterRequest(actor="demo/one")
    roots = identity.trust("service-dns")
    for names, good in (([SERVER_NAME], True), (["elsewhere.svc"], False)):
        bundle = identity.service_credential(f"r{len(names[0])}", names)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(bundle)
        with router(OK, context=context) as end:
            if good:
                with exchange(end.address, request, ClientTls(roots), 5) as answer:
                    assert answer.read() == b"hi"
            else:
                with pytest.raises(AteError, match="certificate verify failed"):
                    exchange(end.address, request, ClientTls(roots), 5)
                assert end.heads == []


def test_the_router_gets_to_see_the_clients_certificate(tmp_path: Path) -> None:
    identity = LocalIdentity(tmp_path / "state")
    identity.ensure()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.service_credential("r", [SERVER_NAME]))
    context.load_verify_locations(identity.trust("pod-identity"))
    context.verify_mode = ssl.CERT_REQUIRED
    identity.credential("cli", spiffe.CLI_ID)
    layout = Layout(tmp_path / "state")
    with router(OK, context=context) as end:
        request = RouterRequest(actor="demo/one")
        with exchange(end.address, request, ClientTls.of(layout), 5) as answer:
            assert answer.read() == b"hi"


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    identity = LocalIdentity(tmp_path / "state")
    identity.ensure()
    roots, missing = identity.trust("service-dns"), tmp_path / "none.pem"
    for tls in (ClientTls(missing), ClientTls(roots, missing)):
        with pytest.raises(AteError, match=r"cannot use .*none\.pem"):
            tls.context()


def test_nobody_there_and_nobody_answering_are_told_apart() -> None:
    request = RouterRequest(actor="demo/one")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(AteError, match=r"no answer from demo/one in 0\.2 s"):
            exchange(address, request, None, 0.2)
    with pytest.raises(AteError, match="refused"):
        exchange(address, request, None, 5)
