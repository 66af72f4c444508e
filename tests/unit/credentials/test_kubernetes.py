"""Secrets of a cluster, against a real HTTPS server that answers as its API does."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from atenet.credentials.failure import Denied, NotThere, Unavailable
from atenet.credentials.kubernetes import KubernetesSecrets, allow_list, check_server
from atenet.errors import AteError

from tests.support.pki import Authority


@dataclass
class Cluster:
    """`answers`: status and body by path."""

    port: int
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def authority() -> Authority:
    return Authority.create("cluster")


@pytest.fixture
def cluster(authority: Authority, tmp_path: Path) -> Iterator[Cluster]:
    bundle = tmp_path / "server.pem"
    bundle.write_bytes(authority.issue(dns=["localhost"]))
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("t0ken\n")
    seen: Cluster

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.asked.append((self.path, self.headers["authorization"]))
            status, body = seen.answers.get(self.path, (404, b"{}"))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("location", "https://elsewhere.example/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    seen = Cluster(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


def secrets(cluster: Cluster, tmp_path: Path, *allowed: str) -> KubernetesSecrets:
    return KubernetesSecrets(
        f"https://localhost:{cluster.port}",
        tmp_path / "token",
        tmp_path / "ca.crt",
        allow_list(allowed),
    )


def secret(**data: str) -> bytes:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return json.dumps({"kind": "Secret", "data": encoded}).encode()


PATH = "/api/v1/namespaces/team-ns/secrets/api"


def test_an_atespace_gets_secrets_of_the_namespace_it_was_given(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.answers[PATH] = 200, secret(token="s3cret")
    source = secrets(cluster, tmp_path, "team=team-ns", "team=more", "other=other-ns")
    assert source.read("team", ["team-ns", "api", "token"]) == b"s3cret"
    assert cluster.asked == [(PATH, "Bearer t0ken")]
    (tmp_path / "token").write_text("rotated")
    source.read("team", ["team-ns", "api", "token"])
    assert cluster.asked[-1][1] == "Bearer rotated"


def test_everybody_else_is_denied_and_the_cluster_is_not_asked(
    cluster: Cluster, tmp_path: Path
) -> None:
    source = secrets(cluster, tmp_path, "team=team-ns")
    for atespace, namespace in (("other", "team-ns"), ("team", "kube-system"), ("", "team-ns")):
        with pytest.raises(Denied):
            source.read(atespace, [namespace, "api", "token"])
    for tail in (["team-ns", "api"], ["team-ns", "api", "token", "x"], []):
        with pytest.raises(NotThere):
            source.read("team", tail)
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((404, b"{}"), NotThere),
        ((200, secret(other="x")), NotThere),
        ((200, b'{"kind": "Secret"}'), NotThere),
        ((401, b"{}"), Denied),
        ((403, b"{}"), Denied),
        ((302, b""), Unavailable),
        ((500, b"{}"), Unavailable),
        ((200, b"no json"), Unavailable),
        ((200, b"[]"), Unavailable),
        ((200, b'{"data": {"token": "*"}}'), Unavailable),
    ],
)
def test_what_the_cluster_answers_decides(
    cluster: Cluster, tmp_path: Path, answer: tuple[int, bytes], kind: type[Exception]
) -> None:
    cluster.answers[PATH] = answer
    with pytest.raises(kind):
        secrets(cluster, tmp_path, "team=team-ns").read("team", ["team-ns", "api", "token"])
    assert len(cluster.asked) == 1


def test_a_server_that_is_not_the_clusters_gets_no_token(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority.create("another").pem)
    with pytest.raises(Unavailable):
        secrets(cluster, tmp_path, "team=team-ns").read("team", ["team-ns", "api", "token"])
    assert cluster.asked == []


@pytest.mark.parametrize("entry", ["team", "=ns", "team=", "*=ns", "team=*"])
def test_an_allow_entry_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(AteError, match="--allow"):
        allow_list([entry])


@pytest.mark.parametrize("url", ["http://a:1", "a:6443", "https://", "https://a:x", "https://a/b"])
def test_a_server_that_is_no_https_url_is_named(url: str) -> None:
    with pytest.raises(AteError, match="--kubernetes"):
        check_server(url)
