"""HTTP/1.1 messages as they stand on the wire: strict reading, nothing repaired."""

import asyncio
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Head:
    """A start line and the fields below it, order and spelling kept."""

    start: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        if len(values) > 1:
            raise AssertionError(f"{name} stands {len(values)} times: {values}")
        return values[0] if values else None

    @property
    def names(self) -> set[str]:
        return {key.lower() for key, _ in self.fields}

    @property
    def status(self) -> int:
        return int(self.start.split(" ", 2)[1])

    @property
    def method(self) -> str:
        return self.start.split(" ", 2)[0]

    @property
    def target(self) -> str:
        return self.start.split(" ", 2)[1]

    @property
    def length(self) -> int | None:
        value = self.get("content-length")
        return None if value is None else int(value)

    @property
    def chunked(self) -> bool:
        return "chunked" in (self.get("transfer-encoding") or "").lower()


def parse_head(raw: bytes) -> Head:
    """`raw` ends with the empty line."""
    lines = raw.decode("latin-1").split("\r\n")
    assert lines[-2:] == ["", ""], f"head without its end: {raw!r}"
    fields = []
    for line in lines[1:-2]:
        name, separator, value = line.partition(":")
        assert separator, f"field without a colon: {line!r}"
        assert not set(line) & {"\r", "\n"}, f"bare CR or LF: {line!r}"
        assert name == name.strip(), f"white space around a name: {line!r}"
        fields.append((name, value.strip(" \t")))
    return Head(lines[0], fields)


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head, or None when the peer ended cleanly between messages."""
    try:
        return parse_head(await reader.readuntil(b"\r\n\r\n"))
    except asyncio.IncompleteReadError as cut:
        if not cut.partial:
            return None
        raise


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """One chunk; b"" for the last one, whose trailer section is left to read."""
    size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
    if size == 0:
        return b""
    data = await reader.readexactly(size)
    assert await reader.readexactly(2) == b"\r\n", "chunk without its CRLF"
    return data


async def read_trailers(reader: asyncio.StreamReader) -> list[tuple[str, str]]:
    """The fields after the last chunk."""
    fields = []
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        name, _, value = line.decode("latin-1").partition(":")
        fields.append((name, value.strip()))
    return fields


@dataclass
class Body:
    data: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)


async def read_chunked(reader: asyncio.StreamReader) -> Body:
    parts = []
    while data := await read_chunk(reader):
        parts.append(data)
    return Body(b"".join(parts), await read_trailers(reader))


async def read_request_body(head: Head, reader: asyncio.StreamReader) -> Body:
    if head.chunked:
        return await read_chunked(reader)
    return Body(await reader.readexactly(head.length or 0))


async def read_response_body(
    head: Head, reader: asyncio.StreamReader, *, method: str = "GET"
) -> Body:
    if method == "HEAD" or head.status in (204, 304) or head.status < 200:
        return Body()
    if head.chunked:
        return await read_chunked(reader)
    if head.length is not None:
        return Body(await reader.readexactly(head.length))
    return Body(await reader.read())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
