"""Actor templates. They never change: an actor's template is what it was made from."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import already_exists, not_found, precondition
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction
from atenet.ateapi.validate import fields, paging, template
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS"]


async def _create(api: Api, request: pb.CreateActorTemplateRequest) -> pb.ActorTemplate:
    made = template.for_create(request.actor_template, api.default_sandbox)
    records.created(made.metadata, api.clock())
    atespace, name = made.metadata.atespace, made.metadata.name

    def change(tx: Transaction) -> pb.ActorTemplate:
        if tx.atespaces.get(atespace) is None:
            raise precondition(f"atespace {atespace} does not exist")
        if tx.templates.get(atespace, name):
            raise already_exists(f"actor template {atespace}/{name}")
        tx.templates.put(made)
        return made

    return await api.store.write(change)


async def _get(api: Api, request: pb.GetActorTemplateRequest) -> pb.ActorTemplate:
    atespace, name = fields.reference("actor_template", request.actor_template)
    found = await api.store.read(lambda tx: tx.templates.get(atespace, name))
    if found is None:
        raise not_found(f"actor template {atespace}/{name}")
    return found


async def _list(api: Api, request: pb.ListActorTemplatesRequest) -> pb.ListActorTemplatesResponse:
    if request.atespace:
        fields.name("atespace", request.atespace)
    page = paging.Page("templates", request, parts=2)
    found = await api.store.read(
        lambda tx: tx.templates.page(request.atespace, paging.pair(page.after), page.size + 1)
    )
    items, token = page.cut(found, lambda t: (t.metadata.atespace, t.metadata.name))
    return pb.ListActorTemplatesResponse(actor_templates=items, next_page_token=token)


async def _delete(api: Api, request: pb.DeleteActorTemplateRequest) -> pb.ActorTemplate:
    atespace, name = fields.reference("actor_template", request.actor_template)
    fields.options("options", request.options)

    def change(tx: Transaction) -> pb.ActorTemplate:
        found = tx.templates.get(atespace, name)
        if found is None:
            raise not_found(f"actor template {atespace}/{name}")
        records.check_options(request.options, found.metadata)
        if tx.templates.in_use(atespace, name):
            raise precondition(f"actor template {atespace}/{name} still has actors")
        tx.templates.delete(atespace, name)
        return found

    gone = await api.store.write(change)
    api.watch.template_deleted(gone.metadata.uid)
    return gone


HANDLERS: dict[str, Handler] = {
    "CreateActorTemplate": _create,
    "GetActorTemplate": _get,
    "ListActorTemplates": _list,
    "DeleteActorTemplate": _delete,
}
