"""The engine's error table, for the answers that Envoy gives by itself."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from atenet import _engine

__all__ = ["Refusal", "egress_denial", "refusal"]


@dataclass(frozen=True)
class Refusal:
    """One row: `reason` is the `ate-reason` token, `retry_after` seconds."""

    reason: str
    status: int
    body: str
    grpc_status: int
    retry_after: int | None


def refusal(reason: str) -> Refusal:
    """The row with this token, as the Envoy dataplane answers it."""
    return _table()[reason]


@functools.cache
def _table() -> dict[str, Refusal]:
    return {row["reason"]: Refusal(**row) for row in json.loads(_engine.refusals("envoy"))}


def egress_denial(name: str) -> Refusal:
    """The row of the egress gateway's table with this name: its token, and `/` and a word where several share one."""
    return _denials()[name]


@functools.cache
def _denials() -> dict[str, Refusal]:
    return {name: Refusal(**row) for name, row in json.loads(_engine.egress_denials()).items()}
