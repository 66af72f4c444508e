"""Actors' credentials for the egress gateway, and their tunnel certificates for their nodes."""

from __future__ import annotations

import grpc

from atenet.ateapi import audit, callers, records
from atenet.ateapi.failure import CallError, aborted, invalid, not_found, precondition
from atenet.ateapi.mint import CertificateMint, TokenMint
from atenet.ateapi.mint.certificates import requested_key
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.validate import fields
from atenet.identity.spiffe import actor_id, worker_for_actor_id
from atenet.proto import ateapi_pb2 as pb

__all__ = ["CONTROL_HANDLERS", "NODE_HANDLERS"]

# Starting actors may need the network before they are ready; those that end keep what they have.
_HOSTED = (pb.ACTOR_STATE_RESUMING, pb.ACTOR_STATE_RUNNING)
# On their way out, and yet they may turn out to run on: one that was in use, one that cannot freeze.
_UNDECIDED = (pb.ACTOR_STATE_SUSPENDING, pb.ACTOR_STATE_PAUSING)


async def _jwt(api: Api, request: pb.MintActorJWTRequest) -> pb.MintActorJWTResponse:
    fields.audiences("audience", request.audience)
    fields.token_lifetime("expiration_seconds", request.expiration_seconds)
    actor = await _find(api, request.actor, request.actor_uid)
    token, expires = await _tokens(api).issue(
        actor, request.audience, request.expiration_seconds, api.clock()
    )
    return pb.MintActorJWTResponse(actor_jwt=token, expires_at=records.stamp(expires))


async def _certificate(
    api: Api, request: pb.MintActorCertificateRequest
) -> pb.MintActorCertificateResponse:
    key = requested_key(request.certificate_signing_request)
    actor = await _find(api, request.actor, request.actor_uid)
    uri = actor_id(actor.metadata.atespace, actor.metadata.name)
    return pb.MintActorCertificateResponse(actor_certificates=_certificates(api).issue(key, uri))


async def _worker_certificate(
    api: Api, request: pb.MintWorkerActorCertificateRequest
) -> pb.MintWorkerActorCertificateResponse:
    """Only for the node that hosts the actor: what the store says, not what the node says."""
    node = callers.own_node()
    if not request.actor_uid:
        raise invalid("actor_uid", "is required")
    key = requested_key(request.certificate_signing_request)
    actor = await _find(api, request.actor, request.actor_uid)
    status = actor.status
    here = status.worker_assignment.node_name == node
    if here and status.state in _UNDECIDED:
        raise CallError(
            grpc.StatusCode.UNAVAILABLE, f"{records.actor_label(actor)} is being stopped; retry"
        )
    if not here or status.state not in _HOSTED:
        raise CallError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"{records.actor_label(actor)} is not hosted on node {node}",
        )
    uri = worker_for_actor_id(actor.metadata.atespace, actor.metadata.name)
    issued = _certificates(api).issue(key, uri)
    return pb.MintWorkerActorCertificateResponse(actor_certificates=issued)


async def _find(api: Api, ref: pb.ObjectRef, uid: str) -> pb.Actor:
    """The actor of that incarnation, if one is named. Nothing is minted for what is on its way out."""
    atespace, name = fields.reference("actor", ref)
    fields.text("actor_uid", uid, limit=64)
    found = await api.store.read(lambda tx: tx.actors.get(atespace, name))
    if found is None or found.status.state == pb.ACTOR_STATE_DELETING:
        raise not_found(f"actor {atespace}/{name}")
    if uid and uid != found.metadata.uid:
        raise aborted(f"{records.actor_label(found)} has another uid: it was made again")
    audit.minting_for(found.metadata.uid)
    return found


def _tokens(api: Api) -> TokenMint:
    if api.tokens is None:
        raise precondition("this control plane mints no tokens: it has no --issuer")
    return api.tokens


def _certificates(api: Api) -> CertificateMint:
    if api.certificates is None:
        raise precondition("this control plane mints no certificates: it has no --actor-ca-cert")
    return api.certificates


CONTROL_HANDLERS: dict[str, Handler] = {
    "MintActorJWT": _jwt,
    "MintActorCertificate": _certificate,
}
NODE_HANDLERS: dict[str, Handler] = {"MintWorkerActorCertificate": _worker_certificate}
