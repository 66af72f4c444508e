"""Asking one that was taken over: it holds nobody up, and fills nobody's memory."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from atenet.client.request import ClientTls
from atenet.denials.client import fetch_denials
from atenet.errors import AteError
from atenet.identity import LocalIdentity, spiffe

NAME = spiffe.EGRESS_SERVER_NAME
OK = b"HTTP/1.1 200 OK\r\n"
Behave = Callable[[ssl.SSLSocket, threading.Event], None]


@pytest.fixture
def identity(tmp_path: Path) -> LocalIdentity:
    made = LocalIdentity(tmp_path)
    made.ensure()
    return made


@contextlib.contextmanager
def gateway(identity: LocalIdentity, behave: Behave | None) -> Iterator[str]:
    """One connection is answered so; None: not even its handshake is."""
    over = threading.Event()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.service_credential("egress", [NAME]))

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            plain, _ = listener.accept()
            with plain:
                if behave is None:
                    over.wait(30)
                    return
                with context.wrap_socket(plain, server_side=True) as way:
                    way.recv(65536)
                    behave(way, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield "{}:{}".format(*listener.getsockname())
        finally:
            over.set()
            thread.join()


def drips(head: bytes) -> Behave:
    """A byte at a time, each soon enough for a time limit that begins anew with each."""

    def behave(way: ssl.SSLSocket, over: threading.Event) -> None:
        way.sendall(head)
        while not over.wait(0.05):
            way.sendall(b" ")

    return behave


def flood(way: ssl.SSLSocket, over: threading.Event) -> None:
    way.sendall(OK + b"\r\n[")
    while not over.is_set():
        way.sendall(b" " * 65536)


def says(answer: bytes) -> Behave:
    return lambda way, _: way.sendall(answer)


def asked(identity: LocalIdentity, address: str, seconds: float) -> None:
    context = ClientTls(roots=identity.trust("service-dns")).context()
    fetch_denials(address, NAME, "team/agent", context, seconds=seconds)


@pytest.mark.parametrize(
    "behave",
    [
        None,
        lambda _, over: over.wait(30),
        drips(b""),
        drips(OK),
        drips(OK + b"\r\n["),
        drips(OK + b"Content-Length: 1000\r\n\r\n["),
    ],
    ids=["handshake", "silent", "status", "header", "body", "length"],
)
def test_the_time_limit_is_for_the_whole_answer(
    identity: LocalIdentity, behave: Behave | None
) -> None:
    began = time.monotonic()
    with (
        gateway(identity, behave) as address,
        pytest.raises(AteError, match=r"no whole answer in 0\.5 s"),
    ):
        asked(identity, address, 0.5)
    assert time.monotonic() - began < 10


def test_an_answer_without_end_is_not_read_to_its_end(identity: LocalIdentity) -> None:
    with gateway(identity, flood) as address, pytest.raises(AteError, match="more than 262144"):
        asked(identity, address, 60)


def test_what_a_refusal_says_is_shown_on_one_line(identity: LocalIdentity) -> None:
    answer = b"HTTP/1.1 400 Bad\r\n\r\n\x1b[2Jone\ntwo" + b"x" * 1000
    with gateway(identity, says(answer)) as address, pytest.raises(AteError) as caught:
        asked(identity, address, 60)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400


def test_a_list_that_is_none_is_told_as_that(identity: LocalIdentity) -> None:
    answer = OK + b'\r\n[{"times": "many"}]'
    with (
        gateway(identity, says(answer)) as address,
        pytest.raises(AteError, match="no list of denials"),
    ):
        asked(identity, address, 60)
