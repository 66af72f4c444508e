"""What a request for a pod's certificate may get. Pure: what was asked and what is so, in; a decision, out."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec

from atenet.controller.signing import names
from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.identity.authority import LEAF_LIFETIME, Usage
from atenet.identity.credential import Want
from atenet.identity.local import pod_want

__all__ = ["Asked", "Denial", "Facts", "Grant", "Pod", "decide", "pod_certificate"]


@dataclass(frozen=True)
class Pod:
    """A pod as the API server has it."""

    uid: str
    service_account: str
    node: str
    # All its containers have ended, for good.
    over: bool = False


@dataclass(frozen=True)
class Asked:
    """A PodCertificateRequest."""

    authority: str
    namespace: str
    pod: str
    pod_uid: str
    service_account: str
    service_account_uid: str
    node: str
    node_uid: str
    # PKCS #10, DER, base64 as the API has it. Its signature is checked by the API server.
    csr: str
    max_seconds: int = 86400
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Facts:
    """What the API server says about those whom the request names; None: there is none."""

    pod: Pod | None
    service_account_uid: str | None
    node_uid: str | None


@dataclass(frozen=True)
class Grant:
    """A certificate to be signed."""

    want: Want
    key: ec.EllipticCurvePublicKey
    lifetime: timedelta


@dataclass(frozen=True)
class Denial:
    """A last word: the kubelet does not ask again for this pod."""

    reason: str
    message: str


def decide(asked: Asked, facts: Facts) -> Grant | Denial:
    """Names come from what the API server knows, never from what stands in the CSR."""
    denial = _mismatch(asked, facts)
    if denial is not None:
        return denial
    try:
        want = _want(asked)
    except AteError as e:
        return Denial("NameNotUsable", e.message)
    if want is None:
        return Denial(
            "NotServing",
            f"service account {asked.namespace}/{asked.service_account} backs no Service of this installation",
        )
    if asked.annotations:
        return Denial(
            "InvalidUnverifiedUserAnnotations",
            f"this signer takes no annotations: {', '.join(sorted(asked.annotations))}",
        )
    key = _key(asked.csr)
    if key is None:
        return Denial("UnsupportedKeyType", "set keyType: ECDSAP256 in the projected volume")
    return Grant(want, key, min(LEAF_LIFETIME, timedelta(seconds=asked.max_seconds)))


def pod_certificate(namespace: str, service_account: str, node: str) -> Want:
    """What a pod's own certificate says; an agent's also names its node. Raises AteError."""
    spiffe_id = spiffe.pod_id(namespace, service_account)
    return pod_want(spiffe_id, node if spiffe_id == spiffe.ATELET_ID else None)


def _mismatch(asked: Asked, facts: Facts) -> Denial | None:
    """The kubelet's admission looks at the same; a signer that believed it would be its only guard."""
    pod, where = facts.pod, f"{asked.namespace}/{asked.pod}"
    if pod is None:
        return Denial("PodNotFound", f"there is no pod {where}")
    if pod.uid != asked.pod_uid:
        return Denial("PodReplaced", f"pod {where} is another one by now")
    if pod.over:
        return Denial("PodFinished", f"pod {where} has ended")
    if pod.service_account != asked.service_account:
        return Denial("ServiceAccountMismatch", f"pod {where} runs as {pod.service_account}")
    if facts.service_account_uid != asked.service_account_uid:
        return Denial(
            "ServiceAccountMismatch",
            f"service account {asked.namespace}/{asked.service_account} is another one by now",
        )
    if pod.node != asked.node:
        return Denial("NodeMismatch", f"pod {where} is on node {pod.node!r}")
    if facts.node_uid != asked.node_uid:
        return Denial("NodeMismatch", f"node {asked.node} is another one by now")
    return None


def _want(asked: Asked) -> Want | None:
    if asked.authority == names.POD_IDENTITY:
        return pod_certificate(asked.namespace, asked.service_account, asked.node)
    name = names.served_name(asked.namespace, asked.service_account)
    return None if name is None else Want(None, (name,), (Usage.SERVER,))


def _key(csr: str) -> ec.EllipticCurvePublicKey | None:
    try:
        key = x509.load_der_x509_csr(b64decode(csr, validate=True)).public_key()
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        return None
    known = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
    usable = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, known)
    return key if usable and isinstance(key, ec.EllipticCurvePublicKey) else None
