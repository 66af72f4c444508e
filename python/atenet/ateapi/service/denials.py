"""EgressSupport: what actors were lately denied, for people with a role that may look."""

from __future__ import annotations

from datetime import UTC

from google.protobuf.timestamp_pb2 import Timestamp

from atenet.ateapi.failure import not_found, precondition
from atenet.ateapi.service.dispatch import Api, Handler
from atenet.ateapi.store import Transaction, every_worker
from atenet.ateapi.validate import fields
from atenet.denials.denial import Denial
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import egresssupport_pb2 as egress_pb

__all__ = ["HANDLERS"]


async def _list(
    api: Api, request: egress_pb.ListActorEgressDenialsRequest
) -> egress_pb.ListActorEgressDenialsResponse:
    atespace, name = fields.reference("actor", request.actor)
    if api.denials is None:
        raise precondition("this control plane asks nobody for denials (--egress-denials)")

    def query(tx: Transaction) -> list[pb.Worker]:
        if tx.actors.get(atespace, name) is None:
            raise not_found(f"actor {atespace}/{name}")
        # Those that live: an actor may have been on any.
        return [row.worker for row in every_worker(tx) if not row.lost]

    workers = await api.store.read(query)
    found = await api.denials.of(f"{atespace}/{name}", workers)
    return egress_pb.ListActorEgressDenialsResponse(
        denials=[_message(each) for each in found.denials], unanswered=found.unanswered
    )


def _message(denial: Denial) -> egress_pb.EgressDenial:
    first, last = Timestamp(), Timestamp()
    first.FromDatetime(denial.first.astimezone(UTC))
    last.FromDatetime(denial.last.astimezone(UTC))
    return egress_pb.EgressDenial(
        first=first,
        last=last,
        times=denial.times,
        kind=denial.kind,
        host=denial.host,
        port=denial.port,
        rule=denial.rule,
        reason=denial.reason,
        detail=denial.detail,
    )


HANDLERS: dict[str, Handler] = {"ListActorEgressDenials": _list}
