"""Asking a process for what it lately denied."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from atenet.address import Address
from atenet.denials.server import PATH
from atenet.errors import AteError

__all__ = ["Denial", "fetch_denials"]

_LIMIT_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Denial:
    """The same thing denied `times` times. `kind`: http or tls; None: it did not come to that."""

    first: datetime
    last: datetime
    times: int
    kind: str | None
    host: str | None
    port: int | None
    rule: int | None
    reason: str
    detail: str

    @classmethod
    def of(cls, given: dict[str, Any]) -> Denial:
        """From the page's JSON; keys that a newer process adds are left out."""
        known = {name: given.get(name) for name in cls.__dataclass_fields__}
        times = {name: datetime.fromisoformat(given[name]) for name in ("first", "last")}
        return cls(**{**known, **times})  # type: ignore[arg-type]  # the page has all of them

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {**vars(self), "first": self.first.isoformat(), "last": self.last.isoformat()}


def fetch_denials(
    address: str,
    server_name: str,
    actor: str,
    context: ssl.SSLContext,
    *,
    seconds: float = _LIMIT_SECONDS,
) -> list[Denial]:
    """Newest first. `context`: with our certificate, and what the process's must chain to. Raises AteError."""
    host, port = Address.parse(address).host, Address.parse(address).port
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        plain = socket.create_connection((host, port), seconds)
        connection.sock = context.wrap_socket(plain, server_hostname=server_name)
        connection.request("GET", f"{PATH}?{urlencode({'actor': actor})}")
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise AteError(
            f"{address} cannot be asked for denials: {error or type(error).__name__}",
            hint="`ate status` shows the processes",
        ) from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        said = body.decode(errors="replace").strip()
        raise AteError(f"{address} answered {answer.status}: {said}")
    return [Denial.of(given) for given in json.loads(body)]
