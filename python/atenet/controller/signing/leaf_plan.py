"""Which certificates stand in Secrets, where pods cannot ask for their own. Pure: what is there in, what to do out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from atenet.controller.signing import names
from atenet.controller.signing.request import pod_certificate
from atenet.errors import AteError
from atenet.identity.authority import Authority, Usage
from atenet.identity.credential import Credential, Want

__all__ = ["LeafPlan", "Owner", "Wanted", "WorkerPod", "plan_leaves", "wanted_leaves"]


@dataclass(frozen=True)
class Owner:
    """With whom a Secret goes: the cluster's garbage collector sees to it."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True)
class WorkerPod:
    """A pod of a pool, and the Secrets that it mounts."""

    namespace: str
    name: str
    uid: str
    service_account: str
    mounts: frozenset[str]
    over: bool = False


@dataclass(frozen=True)
class Wanted:
    """One Secret."""

    namespace: str
    secret: str
    authority: str
    want: Want
    owner: Owner


@dataclass(frozen=True)
class LeafPlan:
    """Secrets to issue anew, and to remove: (namespace, name)."""

    issue: tuple[Wanted, ...]
    remove: tuple[tuple[str, str], ...]


def wanted_leaves(accounts: Mapping[str, str], pods: Iterable[WorkerPod]) -> list[Wanted]:
    """`accounts`: name -> uid of the installation's service accounts that are there.

    The name of a component's Secret is never a pod's, whatever the pod is called.
    """
    found = []
    for service, account in names.services().items():
        if account in accounts:
            owner = Owner("v1", "ServiceAccount", account, accounts[account])
            found += _of_account(service, account, owner)
    taken = {(each.namespace, each.secret) for each in found}
    of_pods = [each for each in map(_of_pod, pods) if each is not None]
    return found + [each for each in of_pods if (each.namespace, each.secret) not in taken]


def plan_leaves(
    wanted: Iterable[Wanted],
    found: Mapping[tuple[str, str], Credential | None],
    authorities: Mapping[str, Authority],
    now: datetime,
) -> LeafPlan:
    """`found`: our Secrets; None where what is in it cannot be read.

    Due is what is missing, says something else, is two thirds through its life, or is not of the
    authority that signs now: after a switch all are issued anew at once.
    """
    wanted = list(wanted)
    due = [each for each in wanted if not _serves(each, found, authorities[each.authority], now)]
    needed = {(each.namespace, each.secret) for each in wanted}
    return LeafPlan(tuple(due), tuple(sorted(set(found) - needed)))


def _of_account(service: str, account: str, owner: Owner) -> list[Wanted]:
    identity = pod_certificate(names.NAMESPACE, account, "")
    found = [
        Wanted(names.NAMESPACE, names.identity_secret(account), names.POD_IDENTITY, identity, owner)
    ]
    dns = names.served_name(names.NAMESPACE, account)
    if dns is not None:
        serving = Want(None, (dns,), (Usage.SERVER,))
        secret = names.serving_secret(service)
        found.append(Wanted(names.NAMESPACE, secret, names.SERVICE_DNS, serving, owner))
    return found


def _of_pod(pod: WorkerPod) -> Wanted | None:
    """None for a pod that does not ask, has ended, or runs as an account that no id can be made of.

    Agents are never served here: a Secret cannot tell one node's from another's.
    """
    secret = names.identity_secret(pod.name)
    agent = (pod.namespace, pod.service_account) == (names.NAMESPACE, "atelet")
    if pod.over or agent or secret not in pod.mounts:
        return None
    try:
        want = pod_certificate(pod.namespace, pod.service_account, "")
    except AteError:
        return None
    owner = Owner("v1", "Pod", pod.name, pod.uid)
    return Wanted(pod.namespace, secret, names.POD_IDENTITY, want, owner)


def _serves(
    wanted: Wanted,
    found: Mapping[tuple[str, str], Credential | None],
    issuer: Authority,
    now: datetime,
) -> bool:
    credential = found.get((wanted.namespace, wanted.secret))
    return credential is not None and credential.serves(wanted.want, issuer, now)
