"""Atespaces."""

from __future__ import annotations

from atenet.ateapi import records
from atenet.ateapi.failure import already_exists, not_found, precondition
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction
from atenet.ateapi.validate import fields, paging
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS"]


async def _create(api: Api, request: pb.CreateAtespaceRequest) -> pb.Atespace:
    fields.metadata_for_create("atespace.metadata", request.atespace.metadata, in_atespace=False)
    made = pb.Atespace(metadata=pb.ResourceMetadata(name=request.atespace.metadata.name))
    records.created(made.metadata, api.clock())

    def change(tx: Transaction) -> pb.Atespace:
        if tx.atespaces.get(made.metadata.name):
            raise already_exists(f"atespace {made.metadata.name}")
        tx.atespaces.put(made)
        return made

    return await api.store.write(change)


async def _get(api: Api, request: pb.GetAtespaceRequest) -> pb.Atespace:
    fields.name("name", request.name)
    found = await api.store.read(lambda tx: tx.atespaces.get(request.name))
    if found is None:
        raise not_found(f"atespace {request.name}")
    return found


async def _list(api: Api, request: pb.ListAtespacesRequest) -> pb.ListAtespacesResponse:
    page = paging.Page("atespaces", request)
    found = await api.store.read(lambda tx: tx.atespaces.page(page.after[0], page.size + 1))
    items, token = page.cut(found, lambda a: (a.metadata.name,))
    return pb.ListAtespacesResponse(atespaces=items, next_page_token=token)


async def _delete(api: Api, request: pb.DeleteAtespaceRequest) -> pb.Atespace:
    fields.name("name", request.name)
    fields.options("options", request.options)

    def change(tx: Transaction) -> pb.Atespace:
        found = tx.atespaces.get(request.name)
        if found is None:
            raise not_found(f"atespace {request.name}")
        records.check_options(request.options, found.metadata)
        left = tx.atespaces.in_use(request.name)
        if left:
            raise precondition(f"atespace {request.name} still has {left}; delete them first")
        tx.atespaces.delete(request.name)
        return found

    return await api.store.write(change)


HANDLERS: dict[str, Handler] = {
    "CreateAtespace": _create,
    "GetAtespace": _get,
    "ListAtespaces": _list,
    "DeleteAtespace": _delete,
}
