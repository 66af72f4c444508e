"""Answers PodCertificateRequests for our two signers, as the kubelets of the cluster make them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from lightkube import ApiError, AsyncClient
from lightkube.models.certificates_v1 import PodCertificateRequestStatus
from lightkube.models.meta_v1 import Condition, ObjectMeta
from lightkube.resources.certificates_v1 import (
    PodCertificateRequest,
)
from lightkube.resources.certificates_v1 import (
    PodCertificateRequestStatus as StatusResource,
)
from lightkube.resources.core_v1 import Node, ServiceAccount
from lightkube.resources.core_v1 import Pod as PodResource

from atenet.controller.signing import names
from atenet.controller.signing.cluster import changes, find, is_conflict, is_missing
from atenet.controller.signing.issue import Issued, issue
from atenet.controller.signing.keys import Keys
from atenet.controller.signing.request import Asked, Denial, Facts, Pod, decide
from atenet.controller.signing.work import Work
from atenet.errors import AteError

__all__ = ["PodCertificates", "pod_of"]

_log = logging.getLogger(__name__)

_Key = tuple[str, str]


class PodCertificates:
    """Signs or denies each request once; what cannot be answered now is tried again."""

    def __init__(self, client: AsyncClient, keys: Keys, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._open: dict[_Key, PodCertificateRequest] = {}
        self._work = Work[_Key]("a pod's certificate", self._answer)

    async def run(self, authority: str) -> None:
        """Watches one signer's requests until the watch fails. Raises one of UNREACHABLE."""
        selection = {"spec.signerName": names.signer(authority)}
        found = changes(self._client, PodCertificateRequest, namespace="*", fields=selection)
        async for event, request in found:
            key = _key(request)
            if event == "DELETED" or (request.status is not None and request.status.conditions):
                self._open.pop(key, None)
                continue
            self._open[key] = request
            self._work.add(key)

    async def work(self) -> None:
        """Answers, until cancelled."""
        await self._work.run()

    async def _answer(self, key: _Key) -> None:
        request = self._open.get(key)
        if request is None:
            return
        asked = _asked(request)
        decision = decide(asked, await self._facts(asked))
        if isinstance(decision, Denial):
            status = _denied(decision, self._clock())
        else:
            authority = await self._keys.current(asked.authority)
            issued = issue(decision, authority, self._clock())
            if issued is None:
                raise AteError(
                    f"authority {asked.authority} expires within the hour",
                    hint=f"ate-setup rotate-ca {asked.authority}",
                )
            status = _issued(issued, self._clock())
        if await self._write(request, status):
            self._open.pop(key, None)
            _say(asked, decision)

    async def _facts(self, asked: Asked) -> Facts:
        """Read now and not from a cache: a pod that is not there yet would be denied for ever."""
        where = asked.namespace
        pod, account, node = await asyncio.gather(
            find(self._client, PodResource, asked.pod, where),
            find(self._client, ServiceAccount, asked.service_account, where),
            find(self._client, Node, asked.node),
        )
        return Facts(None if pod is None else pod_of(pod), _uid(account), _uid(node))

    async def _write(
        self, request: PodCertificateRequest, status: PodCertificateRequestStatus
    ) -> bool:
        """False when the request is gone or was answered meanwhile."""
        meta = request.metadata or ObjectMeta()
        answer = StatusResource(
            metadata=ObjectMeta(
                name=meta.name, namespace=meta.namespace, resourceVersion=meta.resourceVersion
            ),
            spec=request.spec,
            status=status,
        )
        try:
            await self._client.replace(answer, str(meta.name), namespace=meta.namespace)
        except ApiError as e:
            if is_missing(e) or is_conflict(e):
                return False  # gone, or its news are on the way
            raise
        return True


def pod_of(found: PodResource) -> Pod:
    """What identity looks at in a pod."""
    spec, status, meta = found.spec, found.status, found.metadata
    over = status is not None and status.phase in ("Succeeded", "Failed")
    return Pod(
        uid=str(meta.uid) if meta is not None else "",
        service_account=(spec.serviceAccountName if spec is not None else None) or "",
        node=(spec.nodeName if spec is not None else None) or "",
        over=over,
    )


def _asked(request: PodCertificateRequest) -> Asked:
    spec = request.spec
    return Asked(
        authority=spec.signerName.removeprefix("ate.dev/"),
        namespace=str(request.metadata.namespace) if request.metadata is not None else "",
        pod=spec.podName,
        pod_uid=spec.podUID,
        service_account=spec.serviceAccountName,
        service_account_uid=spec.serviceAccountUID,
        node=spec.nodeName,
        node_uid=spec.nodeUID,
        csr=spec.stubPKCS10Request,
        max_seconds=spec.maxExpirationSeconds or 86400,
        annotations=spec.unverifiedUserAnnotations,
    )


def _denied(denial: Denial, now: datetime) -> PodCertificateRequestStatus:
    return PodCertificateRequestStatus(
        conditions=[_condition("Denied", denial.reason, denial.message, now)]
    )


def _issued(issued: Issued, now: datetime) -> PodCertificateRequestStatus:
    return PodCertificateRequestStatus(
        conditions=[_condition("Issued", "Signed", "signed by ate-controller", now)],
        certificateChain=issued.chain,
        notBefore=issued.not_before,
        beginRefreshAt=issued.begin_refresh_at,
        notAfter=issued.not_after,
    )


def _condition(kind: str, reason: str, message: str, now: datetime) -> Condition:
    return Condition(
        type=kind,
        status="True",
        reason=reason,
        message=message,
        lastTransitionTime=now.replace(microsecond=0),
    )


def _say(asked: Asked, decision: object) -> None:
    extra = {
        "authority": asked.authority,
        "pod": f"{asked.namespace}/{asked.pod}",
        "service_account": asked.service_account,
        "node": asked.node,
    }
    if isinstance(decision, Denial):
        _log.warning(
            "pod certificate denied",
            extra={**extra, "reason": decision.reason, "error": decision.message},
        )
    else:
        _log.info("pod certificate signed", extra=extra)


def _key(request: PodCertificateRequest) -> _Key:
    meta = request.metadata or ObjectMeta()
    return str(meta.namespace), str(meta.name)


def _uid(found: object) -> str | None:
    meta = getattr(found, "metadata", None)
    return None if meta is None else str(meta.uid)
