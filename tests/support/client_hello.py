"""The first thing that a real TLS client says, and changes to it that no library offers."""

import ssl

import pytest

_RECORD, _HANDSHAKE = 5, 4
_SERVER_NAME = b"\x00"  # its kind of name: a host's


def client_hello(name: str | None) -> bytes:
    """What a real client sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def with_server_name(written: bytes) -> bytes:
    """A hello that asks for these bytes, which need not be a name. 1 to 250 of them."""
    stand_in = _placeholder(len(written)).encode()
    # Kind and length before it tell the name from a random byte.
    before = _SERVER_NAME + len(written).to_bytes(2, "big")
    said = client_hello(stand_in.decode())
    assert said.count(before + stand_in) == 1
    return said.replace(before + stand_in, before + written)


def with_extension(said: bytes, number: int, content: bytes) -> bytes:
    """The same hello with one more extension before the others."""
    head, body = said[:_RECORD], said[_RECORD:]
    at = _HANDSHAKE + 2 + 32  # version and random
    at += 1 + body[at]  # session
    at += 2 + int.from_bytes(body[at : at + 2], "big")  # suites
    at += 1 + body[at]  # compression
    added = number.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    extensions = added + body[at + 2 :]
    message = body[_HANDSHAKE:at] + len(extensions).to_bytes(2, "big") + extensions
    whole = body[:1] + len(message).to_bytes(3, "big") + message
    return head[:3] + len(whole).to_bytes(2, "big") + whole


def _placeholder(length: int) -> str:
    """A name of so many characters that any client takes."""
    return ".".join(["p" * 61] * (length // 62 + 1))[:length].rstrip(".").ljust(length, "p")
