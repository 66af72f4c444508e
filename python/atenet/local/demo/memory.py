"""The promises of the demo about memory. Each returns what it saw, or fails with what it saw instead."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from atenet.errors import AteError
from atenet.local.demo.checks import full_pool
from atenet.local.demo.report import require
from atenet.local.demo.websocket import WebSocket
from atenet.local.demo.world import World, actor_headers

__all__ = ["CHECKS"]


def moves(world: World) -> str:
    """A counter that is held only in memory goes on after a move to another worker."""
    for _ in range(3):
        before = _asked(world, "remembers", "POST")
    first = world.worker_of("remembers")
    world.suspend("remembers")
    with full_pool(world) as fillers:
        for name, worker in fillers.items():
            if worker != first:
                world.suspend(name)
        after = _asked(world, "remembers", "POST")
    second = world.worker_of("remembers")
    world.suspend("remembers")
    seen = f"{first} -> {second}, count {before['count']} -> {after['count']}"
    same = after["started"] == before["started"] and after["count"] == before["count"] + 1
    require(second not in ("", first) and same, seen)
    return f"{seen}, the same process"


def notebook(world: World) -> str:
    """A Jupyter kernel, spoken to over WebSocket, has its variables after it slept."""
    made = world.request("notebook", "/api/kernels", "POST", body=b"{}")
    require(made.status == 201, f"status {made.status}: {made.body[:200]!r}")
    kernel = str(json.loads(made.body)["id"])
    _run(world, kernel, "import random; answer, others = 41, [random.random() for _ in range(9)]")
    world.suspend("notebook")
    began = time.monotonic()
    said = _run(world, kernel, "print(answer + 1, len(others))")
    took = (time.monotonic() - began) * 1000
    world.suspend("notebook")
    require(said.strip() == "42 9", f"it said {said!r}")
    return f"answer + 1 is {said.split()[0]}, {took:.0f} ms after it was asked while it slept"


def golden(world: World) -> str:
    """A new actor goes on from its template's one boot, against one that boots."""
    booted = _first_answer(world, "notebook-boot")
    restored = _first_answer(world, "notebook-2")
    seen = f"{restored:.0f} ms from the golden image, {booted:.0f} ms by a boot"
    require(restored < booted, seen)
    return seen


CHECKS: tuple[tuple[str, Callable[[World], str]], ...] = (
    ("a counter in memory goes on on another worker", moves),
    ("a Jupyter kernel keeps its variables", notebook),
    ("a new actor starts from the golden image", golden),
)


def _first_answer(world: World, name: str) -> float:
    began = time.monotonic()
    answer = world.request(name, "/api")
    took = (time.monotonic() - began) * 1000
    require(answer.status == 200, f"{name}: status {answer.status}")
    world.suspend(name)
    return took


def _asked(world: World, name: str, method: str) -> dict[str, Any]:
    answer = world.request(name, method=method, body=b"")
    require(answer.status == 200, f"status {answer.status}: {answer.body[:200]!r}")
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _run(world: World, kernel: str, code: str) -> str:
    """Runs the code in the kernel; what it printed."""
    with world.connection() as connection:
        path = f"/api/kernels/{kernel}/channels"
        talk = WebSocket(connection, path, {"Host": "notebook", **actor_headers("notebook")})
        asked = uuid.uuid4().hex
        talk.send(json.dumps(_request(asked, code)))
        printed = ""
        while True:
            message = json.loads(talk.receive())
            if message.get("parent_header", {}).get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
            elif kind == "error":
                raise AteError(f"the kernel says {content['ename']}: {content['evalue']}")
            elif kind == "status" and content["execution_state"] == "idle":
                talk.close()
                return printed


def _request(asked: str, code: str) -> dict[str, Any]:
    return {
        "channel": "shell",
        "header": {
            "msg_id": asked,
            "msg_type": "execute_request",
            "username": "demo",
            "session": uuid.uuid4().hex,
            "version": "5.3",
        },
        "parent_header": {},
        "metadata": {},
        "content": {
            "code": code,
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
        },
        "buffers": [],
    }
