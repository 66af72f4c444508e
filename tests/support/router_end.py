"""The router's end of tunnels to a real worker: HTTP/2 CONNECT under the router's own identity."""

import ssl
from collections.abc import Sequence

from atenet.identity import LocalIdentity, spiffe

from tests.support.endpoint import Endpoint
from tests.support.raw_h2 import RawH2, Stream, StreamResetError

_WORKER = spiffe.pod_dns_name(spiffe.pod_id("default", "local"))


class RouterEnd:
    """One connection to one worker."""

    def __init__(self, wire: RawH2, address: str) -> None:
        self._wire = wire
        self._address = address

    @classmethod
    async def connect(cls, identity: LocalIdentity, address: str) -> "RouterEnd":
        pem = identity.credential("router", spiffe.ROUTER_ID)

        def tls(alpn: Sequence[str]) -> ssl.SSLContext:
            context = ssl.create_default_context(cafile=str(identity.trust("pod-identity")))
            context.load_cert_chain(pem)
            context.set_alpn_protocols(list(alpn))
            return context

        host, port = address.rsplit(":", 1)
        return cls(await RawH2.open(Endpoint(host, int(port), tls, _WORKER)), address)

    async def tunnel(self, actor: str, port: int = 80) -> Stream:
        """Answered, whatever the answer."""
        authority = f"{self._address.rsplit(':', 1)[0]}:{port}"
        stream = await self._wire.start(
            [(":method", "CONNECT"), (":authority", authority), ("ate-target-actor", actor)],
            end=False,
        )
        return await self._wire.head(stream)

    async def get(self, stream: Stream) -> bytes:
        """One request on a tunnel that is left open; the body of the answer."""
        before = len(stream.data)
        await self._wire.send(stream, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await self._wire.wait(lambda: _whole(stream.data[before:]) or stream.over)
        # A reset behind the last byte of an answer takes nothing from it.
        if not _whole(stream.data[before:]):
            raise StreamResetError(-1 if stream.reset is None else stream.reset)
        return bytes(stream.data[before:]).partition(b"\r\n\r\n")[2]

    async def over(self, stream: Stream) -> Stream:
        await self._wire.wait(lambda: stream.over)
        return stream

    async def close(self) -> None:
        await self._wire.close()


def _whole(answer: bytes | bytearray) -> bool:
    head, gap, body = bytes(answer).partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(gap) and bool(lengths) and len(body) >= int(lengths[0].partition(b":")[2])
