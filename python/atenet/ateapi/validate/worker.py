"""Workers as their node's agent may register them."""

from __future__ import annotations

import ipaddress
import re

from atenet.ateapi.failure import invalid
from atenet.ateapi.validate import fields
from atenet.errors import AteError
from atenet.identity.spiffe import check_node, parse_pod_id
from atenet.proto import ateapi_pb2 as pb

_MAX_CLASSES = 16
__all__ = ["for_register", "for_update"]

_ENDPOINT = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_UID = re.compile(r"[A-Za-z0-9-]{1,64}")
_MAX_SLOTS = 100_000


def for_register(request: pb.RegisterWorkerRequest) -> pb.Worker:
    """The worker as it will be stored, its capacity inside its status."""
    if not request.HasField("worker"):
        raise invalid("worker", "is required")
    worker = pb.Worker()
    worker.CopyFrom(request.worker)
    worker.DiscardUnknownFields()
    worker.ClearField("metadata")
    worker.metadata.name = request.worker.metadata.name
    # A worker says itself when it drains; what else is in its status is ours to say.
    if worker.status.state not in pb.WorkerState.values():
        raise invalid("worker.status.state", f"{worker.status.state} is not a state")
    draining = worker.status.state == pb.WORKER_STATE_DRAINING
    worker.ClearField("status")
    _place(worker)
    _identity(worker)
    fields.labels("worker.labels", worker.labels)
    fields.within("worker.epoch", worker.epoch, 1, (1 << 63) - 1)
    fields.within("capacity.actors", request.capacity.actors, 0, _MAX_SLOTS)
    fields.labels("capacity.resources", dict.fromkeys(request.capacity.resources, ""))
    for key, amount in request.capacity.resources.items():
        fields.within(f"capacity.resources[{key}]", amount, 0, (1 << 63) - 1)
    worker.status.capacity.CopyFrom(request.capacity)
    worker.status.state = pb.WORKER_STATE_DRAINING if draining else pb.WORKER_STATE_ACTIVE
    worker.status.observed_epoch = worker.epoch
    if len(request.hosted_actor_uids) > _MAX_SLOTS:
        raise invalid("hosted_actor_uids", f"at most {_MAX_SLOTS} uids")
    for i, uid in enumerate(request.hosted_actor_uids):
        if _UID.fullmatch(uid) is None:
            raise invalid(f"hosted_actor_uids[{i}]", f"{uid!r} is not a uid")
    for i, activity in enumerate(request.activity):
        if _UID.fullmatch(activity.actor_uid) is None:
            raise invalid(f"activity[{i}].actor_uid", f"{activity.actor_uid!r} is not a uid")
        fields.within(f"activity[{i}].idle_ms", activity.idle_ms, 0, 1 << 50)
    return worker


def for_update(worker: pb.Worker) -> None:
    """The state may change by update (a drain ends); all else is the worker's own to say."""
    fields.name("worker.metadata.name", worker.metadata.name)
    fields.seen("worker.metadata", worker.metadata)
    if worker.status.state not in (pb.WORKER_STATE_ACTIVE, pb.WORKER_STATE_DRAINING):
        raise invalid("worker.status.state", "must be ACTIVE or DRAINING")


def _place(worker: pb.Worker) -> None:
    fields.name("worker.metadata.name", worker.metadata.name)
    fields.name("worker.worker_namespace", worker.worker_namespace)
    fields.name("worker.worker_pool", worker.worker_pool)
    fields.text("worker.worker_pod", worker.worker_pod, limit=253)
    fields.text("worker.worker_pod_uid", worker.worker_pod_uid, limit=64)
    try:
        check_node(worker.node_name)
    except AteError as e:
        raise invalid("worker.node_name", e.message) from e
    if not 1 <= len(worker.ips) <= 2:
        raise invalid("worker.ips", "needs one or two addresses")
    for i, address in enumerate(worker.ips):
        try:
            ipaddress.ip_address(address)
        except ValueError as e:
            raise invalid(f"worker.ips[{i}]", f"{address!r} is not an IP address") from e
    match = _ENDPOINT.fullmatch(worker.node_endpoint)
    if match is None:
        raise invalid("worker.node_endpoint", "must be host:port of the node's agent")
    fields.port("worker.node_endpoint", int(match.group(1)))


def _identity(worker: pb.Worker) -> None:
    if worker.spiffe_id:
        try:
            parse_pod_id(worker.spiffe_id)
        except AteError as e:
            raise invalid("worker.spiffe_id", e.message) from e
    worker.worker_pod = worker.worker_pod or worker.metadata.name
    worker.sandbox_class = worker.sandbox_class or "process"
    fields.name("worker.sandbox_class", worker.sandbox_class)
    if len(worker.sandbox_classes) > _MAX_CLASSES:
        raise invalid("worker.sandbox_classes", f"at most {_MAX_CLASSES}")
    for i, name in enumerate(worker.sandbox_classes):
        fields.name(f"worker.sandbox_classes[{i}]", name)
