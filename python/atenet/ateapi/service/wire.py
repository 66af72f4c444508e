"""A response made of stored bytes, without parsing and serializing the actor again."""

from __future__ import annotations

__all__ = ["resume_response"]

_ACTOR_FIELD = b"\x0a"  # field 1, length-delimited


def resume_response(actor: bytes) -> bytes:
    """ResumeActorResponse{actor: ..., resumed: false} around a serialized Actor."""
    return _ACTOR_FIELD + _varint(len(actor)) + actor


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
