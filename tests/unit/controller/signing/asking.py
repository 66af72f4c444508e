"""Requests for certificates as kubelets make them."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from atenet.controller.signing import names
from atenet.controller.signing.request import Asked, Facts, Pod
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def stub_csr(key: Any = None, name: x509.Name | None = None) -> str:
    """An empty request, DER, base64."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(name or x509.Name([]))
    algorithm = None if type(key).__name__.startswith("Ed") else hashes.SHA256()
    der = builder.sign(key, algorithm).public_bytes(serialization.Encoding.DER)
    return b64encode(der).decode()


def asked(**changed: Any) -> Asked:
    """A proper request of a worker's pod."""
    found = {
        "authority": names.POD_IDENTITY,
        "namespace": "default",
        "pod": "pool-1",
        "pod_uid": "pod-uid",
        "service_account": "pool",
        "service_account_uid": "account-uid",
        "node": "node-1",
        "node_uid": "node-uid",
        "csr": changed.pop("csr", None) or stub_csr(),
    }
    return Asked(**{**found, **changed})


def facts(**changed: Any) -> Facts:
    """What is so when `asked()` is proper."""
    pod = {"uid": "pod-uid", "service_account": "pool", "node": "node-1"}
    return Facts(
        pod=changed.get("pod", Pod(**{**pod, **changed.get("of_pod", {})})),
        service_account_uid=changed.get("service_account_uid", "account-uid"),
        node_uid=changed.get("node_uid", "node-uid"),
    )
