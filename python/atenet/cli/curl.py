"""`ate curl`: a request to an actor through the router, with curl's own flags."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from atenet.cli.failure import BadInput
from atenet.cli.home import address_of, home_option, running
from atenet.cli.output import working
from atenet.cli.refs import REF
from atenet.client.request import ClientTls, Exchange, RouterRequest, exchange
from atenet.errors import AteError
from atenet.flags import seconds
from atenet.proto import ateapi_pb2 as pb

__all__ = ["curl"]

FAILED_STATUS = 22  # as curl exits with --fail
_DAY = 86400.0


def _limit(text: str) -> float:
    value = seconds(text)
    if not 0 < value <= _DAY:
        raise ValueError(f"{text} is not above 0 and at most a day")
    return value


@click.command()
@click.argument("actor", type=REF)
@click.argument("path", required=False, default="/")
@click.option("-X", "--request", "method", help="Method; GET, or POST when there is a body.")
@click.option("-H", "--header", "headers", multiple=True, help="`Name: value`. Repeatable.")
@click.option("-d", "--data", help="Body; @FILE reads a file, @- standard input.")
@click.option("-i", "--include", is_flag=True, help="Print the status and headers too.")
@click.option("-I", "--head", is_flag=True, help="Ask for the headers only.")
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is sent and received.")
@click.option("-f", "--fail", is_flag=True, help=f"Exit {FAILED_STATUS} on status 400 and above.")
@click.option(
    "-m", "--max-time", type=_limit, metavar="SECONDS", default="300", show_default=True,
    help="How long all of it may take, in seconds.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Actor port: through a CONNECT. Default: 80."
)
@click.option("--plaintext", is_flag=True, help="Over HTTP instead of HTTPS; agentgateway only.")
@home_option
def curl(
    actor: pb.ObjectRef,
    path: str,
    method: str | None,
    headers: tuple[str, ...],
    data: str | None,
    include: bool,
    head: bool,
    verbose: bool,
    fail: bool,
    max_time: float,
    port: int | None,
    plaintext: bool,
    home: Path,
) -> int:
    """Send a request to an actor through the router.

    ACTOR is <atespace>/<name>; it wakes when it sleeps. PATH is the request's path and query.
    """
    layout, record = running(home)
    body = _body(data)
    kind = ("connect" if port else "http") if plaintext else ("connect-tls" if port else "https")
    request = RouterRequest(
        actor=f"{actor.atespace}/{actor.name}",
        method=method or ("HEAD" if head else "POST" if body is not None else "GET"),
        path=path if path.startswith("/") else f"/{path}",
        headers=tuple(map(_header, headers)),
        body=body,
        port=port,
    )
    tls = None if plaintext else ClientTls.of(layout)
    with _at_most(max_time, request.actor):
        with working(f"waiting for {request.actor}"):
            answer = exchange(address_of(record, "router", kind), request, tls, max_time)
        with answer:
            if verbose:
                _narrate(request, answer)
            return _print(answer, include or head, fail)


@contextmanager
def _at_most(limit_seconds: float, actor: str) -> Iterator[None]:
    """From the first byte out to the last one in; a timeout of the socket would begin anew with each."""

    def over(*_: object) -> None:
        raise AteError(
            f"no whole answer from {actor} in {limit_seconds:g} s",
            hint=f"give it longer with --max-time; `ate actor get {actor}` shows its state",
        )

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _print(answer: Exchange, include: bool, fail: bool) -> int:
    out: BinaryIO = sys.stdout.buffer
    if include:
        out.write(f"HTTP/1.1 {answer.status} {answer.reason}\r\n".encode("latin-1"))
        for name, value in answer.headers:
            out.write(f"{name}: {value}\r\n".encode("latin-1"))
        out.write(b"\r\n")
    for block in answer.blocks():
        out.write(block)
        out.flush()
    return FAILED_STATUS if fail and answer.status >= 400 else 0


def _narrate(request: RouterRequest, answer: Exchange) -> None:
    for line in request.head_lines():
        click.echo(f"> {line}", err=True)
    click.echo(f"< HTTP/1.1 {answer.status} {answer.reason}", err=True)
    for name, value in answer.headers:
        click.echo(f"< {name}: {value}", err=True)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not name.strip() or not colon:
        raise BadInput(
            f"--header: {text!r} is not `Name: value`", hint="e.g. -H 'accept: application/json'"
        )
    return name.strip(), value.strip()


def _body(data: str | None) -> bytes | None:
    if data is None or not data.startswith("@"):
        return None if data is None else data.encode()
    if data == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(data[1:]).read_bytes()
    except OSError as error:
        raise BadInput(
            f"--data: cannot read {data[1:]}: {error.strerror}",
            hint="@ reads a file; write @- for standard input",
        ) from error
