"""A store whose objects take long, against one that has stopped to answer."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from atenet.snapshots.s3 import S3Objects

_PIECE, _PIECES = b"x" * 65536, 30
_SILENCE = timedelta(seconds=1)


class _Slow(BaseHTTPRequestHandler):
    """Any object: its pieces come one by one for three seconds; of "/stuck" half of them."""

    protocol_version = "HTTP/1.1"
    stopped = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(_PIECE) * _PIECES))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        for number in range(_PIECES):
            if self.path.endswith("/stuck") and number == 2:
                self.stopped.wait(30)
                return
            self.wfile.write(_PIECE)
            self.stopped.wait(0.1)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Objects]:
    _Slow.stopped.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield S3Objects("bucket", "prefix", silence=_SILENCE)
    _Slow.stopped.set()
    server.shutdown()
    server.server_close()


def _read(store: S3Objects, key: str) -> int:
    size = 0
    with store.reader(key) as file:
        while piece := file.read(1 << 20):
            size += len(piece)
    return size


def test_an_object_may_take_longer_than_a_server_may_be_silent(store: S3Objects) -> None:
    assert _read(store, "large") == len(_PIECE) * _PIECES


def test_a_server_that_falls_silent_is_an_oserror(store: S3Objects) -> None:
    began = time.monotonic()
    with pytest.raises(OSError, match="object store"):
        _read(store, "stuck")
    assert time.monotonic() - began < 25
