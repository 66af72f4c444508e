"""Generated requests: what the router lets through, another HTTP library reads as the same message."""

import asyncio
import contextlib
import random

import pytest

from tests.support.h11_origin import H11Origin, read_all
from tests.support.raw_http1 import RawHttp1
from tests.support.stage import Stage, new_ref

pytestmark = [pytest.mark.conformance("I-12"), pytest.mark.only("agentgateway")]

EXAMPLES = 400
AT_ONCE = 50
GIVEN_UP = 0.5
METHODS = [b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"get", b"M-X", b""]
TARGETS = [
    b"/",
    b"/a?b=c",
    b"*",
    b"http://a/x",
    b"http://b/x",
    b"//a",
    b"/a b",
    b"/\x80",
    b"a:80",
    b"",
]
VERSIONS = [b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0", b"http/1.1", b""]
ENDS = [b"\r\n"] * 12 + [b"\n", b"\r", b"\r\n ", b" \r\n"]
FIELDS = [
    b"content-length: 5", b"content-length: 0", b"content-length: 05", b"content-length: 5, 5",
    b"content-length:5 ", b"content-length: 4294967301", b"transfer-encoding: chunked",
    b"Transfer-Encoding:chunked", b"transfer-encoding: gzip, chunked", b"transfer-encoding : chunked",
    b"connection: close", b"connection: content-length", b"expect: 100-continue", b"te: trailers",
    b"x-a: b", b"x-a:", b"x-\x00: b", b"x-a: \x7f", b"x-a: b\x0bc", b"host: b", b"upgrade: h2c", b": x",
]  # fmt: skip
BODIES = [
    b"", b"hello", b"hello world", b"5\r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\nt: v\r\n\r\n",
    b"5\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"\r\n",
]  # fmt: skip


def generated(chance: random.Random, actor: str) -> bytes:
    """One to three requests, mostly sane, each with a fault now and then."""
    text = b""
    for _ in range(chance.choice([1, 1, 2, 3])):
        start = b" ".join(
            [chance.choice(METHODS[:3]), chance.choice(TARGETS[:2]), b"HTTP/1.1"]
            if chance.random() < 0.7
            else [chance.choice(METHODS), chance.choice(TARGETS), chance.choice(VERSIONS)]
        )
        named = [b"host: a", b"ate-target-actor: " + actor.encode()]
        lines = [start, *named, *chance.sample(FIELDS, chance.choice([0, 1, 1, 2, 3]))]
        text += b"".join(line + chance.choice(ENDS) for line in lines) + b"\r\n"
        text += chance.choice(BODIES)
    last = b"GET /last HTTP/1.1\r\nhost: a\r\nate-target-actor: %s\r\nconnection: close\r\n\r\n"
    return text + last % actor.encode()


async def _exchange(stage: Stage, text: bytes) -> None:
    """Sends the text; reads what comes back to the end, or gives a request up that waits for more."""
    assert stage.router.plain is not None
    async with await RawHttp1.open(stage.router.plain) as wire:
        with contextlib.suppress(OSError, TimeoutError):
            await wire.send(text)
            async with asyncio.timeout(GIVEN_UP):
                await wire.reader.read()


async def _compared(stage: Stage, number: int) -> int:
    """One example: how many of its messages reached the actor."""
    origin = await H11Origin.start()
    try:
        actor = stage.actor_at(origin.address, ref=new_ref())
        text = generated(random.Random(number), actor.ref)
        await _exchange(stage, text)
    finally:
        await origin.close()
    assert not origin.refused, (number, text, origin.refused)
    # A target in absolute form reaches the actor in origin form.
    messages, problem = read_all(text)
    meant = iter([(m.method, m.target.removeprefix(b"http://a"), m.body) for m in messages])
    for message in origin.messages:
        # Those in between were refused, each with an answer of its own.
        same = (message.method, message.target, message.body) in meant
        assert same or problem is not None, (number, text, message)
    return len(origin.messages)


async def test_what_is_let_through_is_read_the_same_by_another_library(stage: Stage) -> None:
    through = 0
    for first in range(0, EXAMPLES, AT_ONCE):
        batch = range(first, first + AT_ONCE)
        through += sum(await asyncio.gather(*(_compared(stage, number) for number in batch)))
    # Neither everything nor nothing: the comparison compared something.
    assert EXAMPLES / 10 < through < EXAMPLES * 2


async def test_any_noise_ends_in_an_answer_or_a_close(stage: Stage) -> None:
    assert stage.router.plain is not None
    endpoints = [stage.router.plain, stage.router.plain_connect]
    for number in range(100):
        chance = random.Random(number)
        noise = chance.randbytes(chance.choice([1, 20, 300]))
        for endpoint in endpoints:
            assert endpoint is not None
            async with await RawHttp1.open(endpoint) as wire, asyncio.timeout(20):
                with contextlib.suppress(OSError):
                    await wire.send(chance.choice([b"", b"GET / HTTP/1.1\r\n", b"PRI * "]) + noise)
                    wire.writer.write_eof()
                    answer = await wire.rest()
                    assert not answer.startswith(b"HTTP/1.1 2")
    assert stage.router.process.returncode is None
