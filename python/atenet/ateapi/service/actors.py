"""Actors: their records, and the operations on them."""

from __future__ import annotations

import grpc

from atenet.ateapi import callers, records
from atenet.ateapi.failure import (
    CallError,
    aborted,
    already_exists,
    invalid,
    not_found,
    precondition,
)
from atenet.ateapi.roles import Role
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.service.wire import resume_response
from atenet.ateapi.store import Transaction
from atenet.ateapi.validate import actor, fields, paging
from atenet.ateapi.workflows.delete import delete
from atenet.ateapi.workflows.pause import pause
from atenet.ateapi.workflows.resume import resume
from atenet.ateapi.workflows.revert import revert
from atenet.ateapi.workflows.suspend import suspend
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS"]


async def _create(api: Api, request: pb.CreateActorRequest) -> pb.Actor:
    made = actor.for_create(request.actor)
    records.created(made.metadata, api.clock())
    made.status.state = pb.ACTOR_STATE_SUSPENDED
    atespace, name = made.metadata.atespace, made.metadata.name

    def change(tx: Transaction) -> pb.Actor:
        if tx.atespaces.get(atespace) is None:
            raise precondition(f"atespace {atespace} does not exist")
        if tx.actors.get(atespace, name):
            raise already_exists(f"actor {atespace}/{name}")
        wanted = made.actor_template
        if tx.templates.get(wanted.atespace, wanted.name) is None:
            raise precondition(f"actor template {wanted.atespace}/{wanted.name} does not exist")
        tx.actors.put(made)
        return made

    return await api.store.write(change)


async def _get(api: Api, request: pb.GetActorRequest) -> pb.Actor:
    return await _find(api, request.actor)


async def _update(api: Api, request: pb.UpdateActorRequest) -> pb.Actor:
    wanted = actor.for_update(request.actor)
    meta = wanted.metadata

    def change(tx: Transaction) -> pb.Actor:
        found = tx.actors.get(meta.atespace, meta.name)
        if found is None:
            raise not_found(f"actor {meta.atespace}/{meta.name}")
        if (meta.uid, meta.version) != (found.metadata.uid, found.metadata.version):
            raise aborted(f"{records.actor_label(found)} changed meanwhile; read it again")
        if wanted.actor_template != found.actor_template:
            raise invalid("actor.actor_template", "cannot be changed")
        found.worker_selector.CopyFrom(wanted.worker_selector)
        records.touched(found.metadata, api.clock())
        tx.actors.put(found)
        return found

    return await api.store.write(change)


async def _list(api: Api, request: pb.ListActorsRequest) -> pb.ListActorsResponse:
    if request.atespace:
        fields.name("atespace", request.atespace)
    _health_listing_only(request)
    page = paging.Page("actors", request, parts=2)
    found = await api.store.read(
        lambda tx: tx.actors.page(request.atespace, paging.pair(page.after), page.size + 1)
    )
    items, token = page.cut(found, lambda a: (a.metadata.atespace, a.metadata.name))
    return pb.ListActorsResponse(actors=items, next_page_token=token)


def _health_listing_only(request: pb.ListActorsRequest) -> None:
    """A router may look whether the control plane answers, not who there is."""
    caller = callers.current()
    only_router = caller.roles == {Role.INGRESS_ROUTER}
    if only_router and (request.page_size != 1 or request.page_token):
        raise CallError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"{caller.subject} may list one actor (page_size 1), and no further page",
        )


async def _delete(api: Api, request: pb.DeleteActorRequest) -> pb.Actor:
    fields.options("options", request.options)
    found = await _find(api, request.actor)
    records.check_options(pb.DeleteOptions(uid=request.options.uid), found.metadata)
    uid = found.metadata.uid
    return await api.operations.run(
        uid,
        lambda: delete(api.context, uid, any_state=request.any_state, options=request.options),
    )


async def _resume(api: Api, request: pb.ResumeActorRequest) -> pb.ResumeActorResponse | bytes:
    atespace, name = fields.reference("actor", request.actor)
    # The warm path: one indexed read, no lock, the stored bytes as they are.
    running = await api.store.read(lambda tx: tx.actors.if_running(atespace, name))
    if running is not None:
        return resume_response(running)
    found = await _find(api, request.actor)
    uid = found.metadata.uid
    resumed, ran = await api.operations.run(uid, lambda: resume(api.context, uid))
    return pb.ResumeActorResponse(actor=resumed, resumed=ran)


async def _suspend(api: Api, request: pb.SuspendActorRequest) -> pb.SuspendActorResponse:
    found = await _find(api, request.actor)
    uid = found.metadata.uid
    done = await api.operations.run(uid, lambda: suspend(api.context, uid))
    return pb.SuspendActorResponse(actor=done)


async def _pause(api: Api, request: pb.PauseActorRequest) -> pb.PauseActorResponse:
    found = await _find(api, request.actor)
    uid = found.metadata.uid
    done = await api.operations.run(uid, lambda: pause(api.context, uid))
    return pb.PauseActorResponse(actor=done)


async def _revert(api: Api, request: pb.RevertActorRequest) -> pb.RevertActorResponse:
    found = await _find(api, request.actor)
    uid = found.metadata.uid
    done, note = await api.operations.run(uid, lambda: revert(api.context, uid))
    return pb.RevertActorResponse(actor=done, note=note)


async def _find(api: Api, ref: pb.ObjectRef) -> pb.Actor:
    atespace, name = fields.reference("actor", ref)
    found = await api.store.read(lambda tx: tx.actors.get(atespace, name))
    if found is None:
        raise not_found(f"actor {atespace}/{name}")
    return found


HANDLERS: dict[str, Handler] = {
    "CreateActor": _create,
    "GetActor": _get,
    "UpdateActor": _update,
    "ListActors": _list,
    "DeleteActor": _delete,
    "ResumeActor": _resume,
    "SuspendActor": _suspend,
    "PauseActor": _pause,
    "RevertActor": _revert,
}
