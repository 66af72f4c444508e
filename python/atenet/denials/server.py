"""Recent denials as a page over mTLS: whoever reads must be one of the named identities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

from atenet.address import Address
from atenet.denials.settings import DenialsSettings
from atenet.errors import AteError
from atenet.pages import Page, PageServer, Query
from atenet.tls_context import ServerContext

__all__ = ["PATH", "page", "serving_denials"]

PATH = "/denials"

# `<atespace>/<actor>` -> what the engine says: a JSON list. Raises ValueError for another text.
Read = Callable[[str], str]


def page(read: Read, readers: Collection[str], query: Query) -> Page:
    """`?actor=<atespace>/<actor>`: that actor's denials as JSON, newest first."""
    if query.peer not in readers:
        return Page("this identity may not read denials\n", "403 Forbidden")
    (actor,) = parse_qs(query.query).get("actor", [""])[:1]
    try:
        return Page(read(actor) + "\n", content_type="application/json")
    except ValueError as error:
        return Page(f"{error}\n", "400 Bad Request")


@contextmanager
def serving_denials(settings: DenialsSettings, read: Read) -> Iterator[str | None]:
    """Serves while the block lasts; the bound address, None where none was asked for. Raises AteError."""
    found = settings.denials_files()
    if found is None:
        yield None
        return
    listen, credential, trust = found
    try:
        address = Address.parse(listen)
    except ValueError as error:
        raise AteError(f"--denials-listen: {error}") from error
    readers = frozenset(settings.denials_reader)
    pages = {PATH: lambda query: page(read, readers, query)}
    context = ServerContext(credential, trust)
    with PageServer("--denials-listen", address, pages, tls=context.current) as server:
        yield str(server.address)
