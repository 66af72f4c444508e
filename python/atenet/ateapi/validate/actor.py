"""Actors as callers may write them."""

from __future__ import annotations

from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import fields
from atenet.proto import ateapi_pb2 as pb

__all__ = ["for_create", "for_update"]


def for_create(actor: pb.Actor) -> pb.Actor:
    """A new actor of the fields that a caller may set; the template's atespace filled in."""
    fields.metadata_for_create("actor.metadata", actor.metadata, in_atespace=True)
    made = pb.Actor(metadata=actor.metadata)
    made.actor_template.CopyFrom(_template(actor))
    _no_source_tag(actor)
    _selector(actor, made)
    made.DiscardUnknownFields()
    return made


def for_update(actor: pb.Actor) -> pb.Actor:
    """The same for a whole-object update; uid and version say what the caller saw."""
    fields.reference(
        "actor.metadata",
        pb.ObjectRef(atespace=actor.metadata.atespace, name=actor.metadata.name),
    )
    fields.seen("actor.metadata", actor.metadata)
    made = pb.Actor(metadata=actor.metadata)
    made.actor_template.CopyFrom(_template(actor))
    _no_source_tag(actor)
    _selector(actor, made)
    made.DiscardUnknownFields()
    return made


def _template(actor: pb.Actor) -> pb.ObjectRef:
    if not actor.HasField("actor_template"):
        raise invalid("actor.actor_template", "is required")
    given = actor.actor_template
    ref = pb.ObjectRef(atespace=given.atespace or actor.metadata.atespace, name=given.name)
    fields.reference("actor.actor_template", ref)
    return ref


def _no_source_tag(actor: pb.Actor) -> None:
    if actor.HasField("source_tag"):
        raise invalid("actor.source_tag", "tags are not supported yet")


def _selector(actor: pb.Actor, made: pb.Actor) -> None:
    if actor.HasField("worker_selector"):
        fields.selector("actor.worker_selector", actor.worker_selector)
        made.worker_selector.CopyFrom(actor.worker_selector)
