"""DNS messages by hand: questions as a stub resolver sends them, answers as it reads them."""

import ipaddress
import struct
from dataclasses import dataclass

A, TXT, AAAA, OPT, HTTPS, ANY = 1, 16, 28, 41, 65, 255
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)


def question(name: str, kind: int = A, *, ident: int = 1, edns: int | None = None) -> bytes:
    """`edns`: how many bytes the client takes by UDP."""
    head = struct.pack("!HHHHHH", ident, 0x0100, 1, 0, 0, 0 if edns is None else 1)
    extra = b"" if edns is None else b"\0" + struct.pack("!HHIH", OPT, edns, 0, 0)
    return head + encoded(name) + struct.pack("!HH", kind, 1) + extra


def encoded(name: str) -> bytes:
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


@dataclass(frozen=True)
class Answer:
    ident: int
    code: int
    truncated: bool
    name: str  # as it was asked, in its letters
    kind: int
    records: tuple[tuple[int, bytes], ...]  # kind and data of the answer section
    authorities: int
    edns: bool
    error: int | None  # RFC 8914

    @property
    def addresses(self) -> list[str]:
        return [str(ipaddress.IPv4Address(data)) for kind, data in self.records if kind == A]


def answer(message: bytes) -> Answer:
    ident, flags, questions, answers, authorities, additional = struct.unpack("!6H", message[:12])
    assert flags & 0x8000, "not an answer"
    assert questions == 1
    name, at = _name(message, 12)
    (kind, _), at = struct.unpack("!HH", message[at : at + 4]), at + 4
    found = []
    for _ in range(answers + authorities + additional):
        _, at = _name(message, at)
        of, _, _, length = struct.unpack("!HHIH", message[at : at + 10])
        found.append((of, message[at + 10 : at + 10 + length]))
        at += 10 + length
    assert at == len(message), "bytes behind the answer"
    options = [data for of, data in found[answers + authorities :] if of == OPT]
    return Answer(
        ident=ident,
        code=flags & 15,
        truncated=bool(flags & 0x0200),
        name=name,
        kind=kind,
        records=tuple(found[:answers]),
        authorities=authorities,
        edns=bool(options),
        error=_error(options[0]) if options else None,
    )


def _error(options: bytes) -> int | None:
    at = 0
    while at < len(options):
        code, length = struct.unpack("!HH", options[at : at + 4])
        if code == 15:
            return int(struct.unpack("!H", options[at + 4 : at + 6])[0])
        at += 4 + length
    return None


def _name(message: bytes, at: int) -> tuple[str, int]:
    labels: list[str] = []
    end = None
    while length := message[at]:
        if length >= 0xC0:
            end = at + 2 if end is None else end
            at = struct.unpack("!H", message[at : at + 2])[0] & 0x3FFF
            continue
        labels.append(message[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    return ".".join(labels), at + 1 if end is None else end
