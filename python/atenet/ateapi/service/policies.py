"""Actors' egress policies: one each, of an incarnation, gone with it."""

from __future__ import annotations

from atenet.ateapi import callers, records
from atenet.ateapi.failure import aborted, already_exists, invalid, not_found
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction
from atenet.ateapi.validate import egress_policy, fields
from atenet.proto import ateapi_pb2 as pb

__all__ = ["HANDLERS", "NODE_HANDLERS"]

_MOST_ASKED = 1000


async def _create(api: Api, request: pb.CreateActorEgressPolicyRequest) -> pb.EgressPolicy:
    atespace, name = fields.reference("actor", request.actor)
    made = egress_policy.for_create(request.egress_policy, atespace)
    records.created(made.metadata, api.clock())

    def change(tx: Transaction) -> pb.EgressPolicy:
        uid = _uid(tx, atespace, name)
        if tx.policies.get(uid) is not None:
            raise already_exists(f"the egress policy of actor {atespace}/{name}")
        tx.policies.put(uid, made)
        return made

    return await api.store.write(change)


async def _get(api: Api, request: pb.GetActorEgressPolicyRequest) -> pb.EgressPolicy:
    atespace, name = fields.reference("actor", request.actor)
    return await api.store.read(lambda tx: _found(tx, atespace, name)[1])


async def _update(api: Api, request: pb.UpdateActorEgressPolicyRequest) -> pb.EgressPolicy:
    atespace, name = fields.reference("actor", request.actor)
    wanted = egress_policy.for_update(request.egress_policy, atespace)
    seen = wanted.metadata

    def change(tx: Transaction) -> pb.EgressPolicy:
        uid, found = _found(tx, atespace, name)
        if (seen.uid, seen.version) != (found.metadata.uid, found.metadata.version):
            raise aborted(
                f"the egress policy of actor {atespace}/{name} changed meanwhile; read it again"
            )
        changed = pb.EgressPolicy(metadata=found.metadata, rules=wanted.rules)
        records.touched(changed.metadata, api.clock())
        tx.policies.put(uid, changed)
        return changed

    return await api.store.write(change)


async def _delete(api: Api, request: pb.DeleteActorEgressPolicyRequest) -> pb.EgressPolicy:
    atespace, name = fields.reference("actor", request.actor)
    fields.options("options", request.options)

    def change(tx: Transaction) -> pb.EgressPolicy:
        uid, found = _found(tx, atespace, name)
        records.check_options(request.options, found.metadata)
        tx.policies.delete(uid)
        return found

    return await api.store.write(change)


async def _for_workers(
    api: Api, request: pb.GetWorkerActorEgressPoliciesRequest
) -> pb.GetWorkerActorEgressPoliciesResponse:
    """Only of actors on the node that asks: what the store says, not what the node says."""
    node = callers.own_node()
    if len(request.known) > _MOST_ASKED:
        raise invalid("known", f"has {len(request.known)} entries; at most {_MOST_ASKED}")
    asked = [
        (fields.reference(f"known[{at}].actor", known.actor), known)
        for at, known in enumerate(request.known)
    ]

    def query(tx: Transaction) -> list[pb.PresentEgressPolicy]:
        found = (_present(tx, node, name, known) for name, known in asked)
        return [present for present in found if present is not None]

    return pb.GetWorkerActorEgressPoliciesResponse(present=await api.store.read(query))


def _present(
    tx: Transaction, node: str, named: tuple[str, str], known: pb.KnownEgressPolicy
) -> pb.PresentEgressPolicy | None:
    actor = tx.actors.get(*named)
    if actor is None or actor.metadata.uid != known.actor_uid:
        return None
    if actor.status.worker_assignment.node_name != node:
        return None
    policy = tx.policies.get(known.actor_uid)
    there = ("", 0) if policy is None else (policy.metadata.uid, policy.metadata.version)
    if there == (known.policy_uid, known.policy_version):
        return pb.PresentEgressPolicy(actor_uid=known.actor_uid, unchanged=True)
    return pb.PresentEgressPolicy(actor_uid=known.actor_uid, policy=policy)


def _uid(tx: Transaction, atespace: str, name: str) -> str:
    actor = tx.actors.get(atespace, name)
    if actor is None:
        raise not_found(f"actor {atespace}/{name}")
    return actor.metadata.uid


def _found(tx: Transaction, atespace: str, name: str) -> tuple[str, pb.EgressPolicy]:
    uid = _uid(tx, atespace, name)
    policy = tx.policies.get(uid)
    if policy is None:
        raise not_found(f"the egress policy of actor {atespace}/{name}")
    return uid, policy


HANDLERS: dict[str, Handler] = {
    "CreateActorEgressPolicy": _create,
    "GetActorEgressPolicy": _get,
    "UpdateActorEgressPolicy": _update,
    "DeleteActorEgressPolicy": _delete,
}
NODE_HANDLERS: dict[str, Handler] = {"GetWorkerActorEgressPolicies": _for_workers}
