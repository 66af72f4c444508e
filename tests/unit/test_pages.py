"""The operators' pages over real sockets."""

import http.client
import json
import socket
import ssl
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from atenet.address import Address
from atenet.errors import AteError
from atenet.identity import LocalIdentity
from atenet.pages import Page, PageServer, Query
from atenet.router import statusz
from atenet.router.admin import parse_stats
from atenet.router.metrics import merge

ANYWHERE = Address("127.0.0.1", 0)
STATUS = {
    "build": {"atenet": "0.1.0"},
    "health": {"envoy": {"healthy": True, "last_success": 1.5}},
    "flags": {"--port-https": 8443, "--ready-file": None},
    "requests": [{"path": "/<script>", "outcome": "ok"}],
}


def ask(address: Address, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_pages_are_served_by_path_and_method() -> None:
    with PageServer("--x", ANYWHERE, {"/healthz": lambda _: Page("ok\n")}) as server:
        assert ask(server.address, "/healthz") == (200, "ok\n")
        assert ask(server.address, "/healthz", "HEAD") == (200, "")
        assert ask(server.address, "/healthz", "POST")[0] == 405
        assert ask(server.address, "/other")[0] == 404


def test_whoever_is_connected_when_it_stops_is_answered() -> None:
    reached, go = threading.Event(), threading.Event()

    def slow(_: Query) -> Page:
        reached.set()
        go.wait(5)
        return Page("slow\n")

    with ExitStack() as stack:
        with PageServer("--x", ANYWHERE, {"/slow": slow}) as server:
            at = (server.address.host, server.address.port)
            clients = [stack.enter_context(socket.create_connection(at, 5)) for _ in range(3)]
            clients[0].sendall(b"GET /slow HTTP/1.0\r\n\r\n")
            assert reached.wait(5)
            # Nobody may have accepted these two yet.
            for client in clients[1:]:
                client.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
            threading.Timer(0.1, go.set).start()
        for client in clients:
            assert client.makefile("rb").read().endswith(b"slow\n")


def test_clients_that_say_nothing_do_not_keep_others_waiting(tmp_path: Path) -> None:
    identity = LocalIdentity(tmp_path)
    identity.ensure()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.service_credential("pages", ["127.0.0.1"]))
    trust = ssl.create_default_context(cafile=str(identity.trust("service-dns")))
    pages = {"/a": lambda _: Page("a\n")}
    with PageServer("--x", ANYWHERE, pages, tls=lambda: context) as server, ExitStack() as stack:
        at = (server.address.host, server.address.port)
        for _ in range(20):
            stack.enter_context(socket.create_connection(at, 5))
        connection = http.client.HTTPSConnection(*at, timeout=5, context=trust)
        connection.request("GET", "/a")
        assert connection.getresponse().read() == b"a\n"
        connection.close()


def test_more_connections_than_there_are_threads_for_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atenet.pages._MOST_CONNECTIONS", 3)
    with PageServer("--x", ANYWHERE, {"/a": lambda _: Page("a\n")}) as server:
        at = (server.address.host, server.address.port)
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(socket.create_connection(at, 5))
            with socket.create_connection(at, 5) as one_too_many:
                assert one_too_many.recv(1) == b""
        eventually_answers(server.address)


def eventually_answers(address: Address) -> None:
    """The threads of those that left are free again soon."""
    for _ in range(200):
        try:
            assert ask(address, "/a") == (200, "a\n")
        except (ConnectionError, http.client.HTTPException):
            threading.Event().wait(0.02)
        else:
            return
    pytest.fail("nobody is answered any more")


def test_a_taken_port_is_named_with_its_flag() -> None:
    with (
        PageServer("--metrics-listen-addr", ANYWHERE, {}) as server,
        pytest.raises(AteError, match="--metrics-listen-addr: cannot listen on"),
    ):
        PageServer("--metrics-listen-addr", server.address, {})


@pytest.mark.parametrize(
    "query",
    [Query("application/json", ""), Query("*/*", "format=json"), Query("", "a&format=json")],
)
def test_programs_get_json(query: Query) -> None:
    page = statusz.render(query, STATUS)
    assert (page.content_type, json.loads(page.body)) == ("application/json", STATUS)


def test_people_get_html_in_which_nothing_is_markup_that_a_client_sent() -> None:
    page = statusz.render(Query("text/html", ""), STATUS)
    assert page.content_type.startswith("text/html")
    assert "/&lt;script&gt;" in page.body
    assert "<script>" not in page.body
    assert "<th>--port-https<td>8443" in page.body


def test_envoys_counts_replace_the_engines_zeros_and_nothing_else() -> None:
    engine = "atenet_router_tunnels 0\natenet_router_tunnels_opened_total 0\nother 0\n# EOF\n"
    envoy = {"atenet_router_tunnels": 5, "atenet_router_tunnels_opened_total": 6, "unknown": 7}
    assert merge(engine, envoy) == (
        "atenet_router_tunnels 5\natenet_router_tunnels_opened_total 6\nother 0\n# EOF\n"
    )
    assert merge(engine, None) == engine


def test_envoys_statistics_are_read_line_by_line() -> None:
    text = "http.ingress.downstream_rq_active: 3\nno number: x\n\nhttp.x: P0(nan,1)\n"
    assert parse_stats(text) == {"http.ingress.downstream_rq_active": 3}
