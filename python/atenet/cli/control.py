"""The CLI's connection to the control plane: mTLS, one deadline, errors as diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from atenet.cli.failure import BadInput, NoSuchThing, NotReachable
from atenet.cli.home import address_of, running
from atenet.cli.output import working
from atenet.errors import AteError
from atenet.identity.spiffe import API_SERVER_NAME
from atenet.proto import ateapi_pb2_grpc
from atenet.rpc.material import WatchedMaterial

__all__ = ["asking", "calling", "control", "paged"]

# A resume or suspend may have to wait for a slow actor; everything else answers at once.
DEADLINE_SECONDS = 60.0


@contextmanager
def asking(
    home: Path, what: str = "asking the control plane", *, refused: str | None = None
) -> Iterator[ateapi_pb2_grpc.ControlStub]:
    """The same, for a command: `what` it does is said once it takes long."""
    with working(what), control(home, refused=refused) as stub:
        yield stub


@contextmanager
def control(home: Path, *, refused: str | None = None) -> Iterator[ateapi_pb2_grpc.ControlStub]:
    """A stub that speaks as the local person. Raises AteError; so do calls within the body.

    `refused`: the hint for when something else must be so first.
    """
    layout, record = running(home)
    address = address_of(record, "ateapi", "grpc")
    material = WatchedMaterial(
        layout.home / "identity" / "cli" / "pod.pem", layout.home / "trust" / "service-dns.pem"
    ).current
    credentials = grpc.ssl_channel_credentials(material.roots, material.key, material.chain)
    options = [("grpc.ssl_target_name_override", API_SERVER_NAME)]
    with (
        grpc.secure_channel(address, credentials, options=options) as channel,
        calling(address, refused),
    ):
        yield ateapi_pb2_grpc.ControlStub(channel)


@contextmanager
def calling(address: str, refused: str | None = None) -> Iterator[None]:
    """Turns gRPC failures of the body into AteErrors."""
    try:
        yield
    except grpc.RpcError as error:
        raise _diagnosis(error.code(), error.details() or "", address, refused) from error


def _diagnosis(code: grpc.StatusCode, details: str, address: str, refused: str | None) -> AteError:
    Code = grpc.StatusCode  # noqa: N806 - as the library spells it
    if code is Code.NOT_FOUND:
        return NoSuchThing(
            details, hint="`ate actor list`, `ate template list`, `ate atespace list`"
        )
    if code is Code.INVALID_ARGUMENT:
        return BadInput(details, hint="correct the field that it names; docs/ has every field")
    if code is Code.ALREADY_EXISTS:
        return BadInput(details, hint="choose another name, or delete that one first")
    if code is Code.UNAVAILABLE:
        return NotReachable(
            f"the control plane at {address} does not answer: {details}",
            hint="`ate status` shows the processes, `ate logs ateapi` why",
        )
    hint = refused if refused and code is Code.FAILED_PRECONDITION else _HINTS.get(code)
    return AteError(details or f"the control plane answered {code.name}", hint=hint)


_HINTS = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: (
        "suspend an actor, or run more workers or slots; a worker selector must match a worker's labels"
    ),
    grpc.StatusCode.ABORTED: "another operation holds it; try again",
    grpc.StatusCode.FAILED_PRECONDITION: "`ate actor get` shows its state",
    grpc.StatusCode.DEADLINE_EXCEEDED: "`ate status` shows the processes",
    grpc.StatusCode.PERMISSION_DENIED: "the control plane's roles decide what this identity may do",
    grpc.StatusCode.INTERNAL: "`ate logs ateapi` and `ate logs ATESPACE/ACTOR` show more",
}


def paged(
    call: Callable[..., Any], request: Any, field: str, timeout: float = DEADLINE_SECONDS
) -> Iterator[Any]:
    """Every item of a List call, page by page; `timeout` in seconds, for each page."""
    while True:
        answer = call(request, timeout=timeout)
        yield from getattr(answer, field)
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token
