"""Node agents' certificates in clusters without pod certificates: CertificateSigningRequests that they make themselves.

A Secret cannot be another one on each node of a DaemonSet. An agent asks with the token of its pod's
service account, in which the API server vouches for the pod, and the pod says which node it is on.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from lightkube import ApiError, AsyncClient
from lightkube.models.certificates_v1 import (
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
)
from lightkube.models.certificates_v1 import (
    CertificateSigningRequestStatus as Status,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestApproval,
    CertificateSigningRequestStatus,
)
from lightkube.resources.core_v1 import Pod as PodResource

from atenet.controller.signing import names
from atenet.controller.signing.cluster import changes, find, is_conflict, is_missing
from atenet.controller.signing.keys import Keys
from atenet.controller.signing.pod_certificates import pod_of
from atenet.controller.signing.request import Denial, Grant, Pod, pod_certificate
from atenet.controller.signing.work import Work
from atenet.errors import AteError
from atenet.identity import pem
from atenet.identity.authority import LEAF_LIFETIME

__all__ = ["NodeRequests", "decide_node_request", "pod_named_in"]

_log = logging.getLogger(__name__)

AGENT = f"system:serviceaccount:{names.NAMESPACE}:atelet"
_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"


def pod_named_in(spec: CertificateSigningRequestSpec) -> tuple[str, str] | None:
    """(name, uid) of the pod whose token asked, as the API server wrote it down."""
    extra = spec.extra or {}
    name, uid = extra.get(_POD_NAME) or [], extra.get(_POD_UID) or []
    return (name[0], uid[0]) if len(name) == 1 and len(uid) == 1 else None


def decide_node_request(spec: CertificateSigningRequestSpec, pod: Pod | None) -> Grant | Denial:
    """`pod`: the one that `pod_named_in` names, as it is now. Pure."""
    named = pod_named_in(spec)
    if spec.username != AGENT or named is None:
        return Denial("NotAnAgent", f"only a pod of {AGENT} is answered here")
    if pod is None or pod.uid != named[1]:
        return Denial("PodNotFound", f"there is no pod {names.NAMESPACE}/{named[0]} of this token")
    if pod.over:
        return Denial("PodFinished", f"pod {names.NAMESPACE}/{named[0]} has ended")
    if pod.service_account != "atelet" or not pod.node:
        return Denial("NodeMismatch", f"pod {named[0]} is on no node, or runs as another account")
    key = _proven_key(spec.request)
    if key is None:
        return Denial("UnsupportedKeyType", "ask with a P-256 key, and sign the request with it")
    try:
        want = pod_certificate(names.NAMESPACE, "atelet", pod.node)
    except AteError as e:
        return Denial("NameNotUsable", e.message)
    asked = timedelta(seconds=spec.expirationSeconds or LEAF_LIFETIME.total_seconds())
    return Grant(want, key, min(LEAF_LIFETIME, asked))


class NodeRequests:
    """Signs or denies each request once; what cannot be answered now is tried again."""

    def __init__(self, client: AsyncClient, keys: Keys, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._open: dict[str, CertificateSigningRequest] = {}
        self._work = Work[str]("a node's certificate", self._answer)

    async def run(self) -> None:
        """Watches until the watch fails. Raises one of UNREACHABLE."""
        selection = {"spec.signerName": names.signer(names.POD_IDENTITY)}
        found = changes(self._client, CertificateSigningRequest, fields=selection)
        async for event, request in found:
            name = str(request.metadata.name) if request.metadata is not None else ""
            if event == "DELETED" or _answered(request):
                self._open.pop(name, None)
                continue
            self._open[name] = request
            self._work.add(name)

    async def work(self) -> None:
        """Answers, until cancelled."""
        await self._work.run(1)

    async def _answer(self, name: str) -> None:
        request = self._open.get(name)
        if request is None:
            return
        named = pod_named_in(request.spec)
        found = None
        if named is not None:
            found = await find(self._client, PodResource, named[0], names.NAMESPACE)
        decision = decide_node_request(request.spec, None if found is None else pod_of(found))
        try:
            await self._write(request, decision)
        except ApiError as e:
            if not (is_missing(e) or is_conflict(e)):
                raise
            return  # gone, or its news are on the way
        self._open.pop(name, None)
        _say(name, decision)

    async def _write(self, request: CertificateSigningRequest, decision: Grant | Denial) -> None:
        if isinstance(decision, Denial):
            await self._judge(request, "Denied", decision.reason, decision.message)
            return
        authority = await self._keys.current(names.POD_IDENTITY)
        leaf = authority.issue(
            decision.key,
            uri=decision.want.uri,
            dns=decision.want.dns,
            usages=decision.want.usages,
            lifetime=decision.lifetime,
            now=self._clock(),
        )
        judged = await self._judge(request, "Approved", "Signed", "an agent, on its own node")
        chain = b64encode(pem.certificate_pem(leaf)).decode()
        conditions = (judged.status.conditions if judged.status is not None else None) or []
        answer = CertificateSigningRequestStatus(
            metadata=_meta(judged),
            spec=request.spec,
            status=Status(certificate=chain, conditions=conditions),
        )
        await self._client.replace(answer, str(_meta(judged).name))

    async def _judge(
        self, request: CertificateSigningRequest, kind: str, reason: str, message: str
    ) -> CertificateSigningRequest | CertificateSigningRequestApproval:
        conditions = (request.status.conditions if request.status is not None else None) or []
        if any(each.type == kind for each in conditions):
            return request  # approved before a crash, and not yet signed
        judgement = CertificateSigningRequestCondition(
            type=kind, status="True", reason=reason, message=message
        )
        answer = CertificateSigningRequestApproval(
            metadata=_meta(request),
            spec=request.spec,
            status=Status(conditions=[*conditions, judgement]),
        )
        return await self._client.replace(answer, str(_meta(request).name))


def _meta(
    request: CertificateSigningRequest | CertificateSigningRequestApproval,
) -> ObjectMeta:
    meta = request.metadata or ObjectMeta()
    return ObjectMeta(name=meta.name, resourceVersion=meta.resourceVersion)


def _answered(request: CertificateSigningRequest) -> bool:
    status = request.status
    if status is None:
        return False
    over = {each.type for each in status.conditions or []} & {"Denied", "Failed"}
    return bool(status.certificate or over)


def _proven_key(request: str) -> ec.EllipticCurvePublicKey | None:
    """Nobody else has checked this request's own signature."""
    try:
        csr = x509.load_pem_x509_csr(b64decode(request))
        key = csr.public_key()
    except ValueError:
        return None
    good = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)
    if not good or not csr.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        return None
    return key


def _say(name: str, decision: Grant | Denial) -> None:
    if isinstance(decision, Denial):
        extra = {"request": name, "reason": decision.reason, "error": decision.message}
        _log.warning("node certificate denied", extra=extra)
    else:
        _log.info("node certificate signed", extra={"request": name, "names": decision.want.dns})
