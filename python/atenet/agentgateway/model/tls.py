"""TLS: the listeners' side and the dialling side."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from atenet.agentgateway.model.base import Part, unused

__all__ = ["BackendPolicies", "BackendTLS", "ListenerTLS"]


class ListenerTLS(Part):
    """The certificate that clients see."""

    # `root` would ask clients for certificates, which this dataplane does not: refused, not ignored.
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"root", "cipherSuites", "minTLSVersion", "maxTLSVersion", "keyExchangeGroups", "spiffe"}
    )

    mode: Literal["static"] = "static"
    cert: str = Field(min_length=1, description="PEM file: the certificate chain, leaf first.")
    key: str = Field(min_length=1, description="PEM file: its private key; may be the same file.")


class BackendTLS(Part):
    """How a peer is dialled and verified."""

    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"insecure", "subjectAltNames", "keyExchangeGroups", "spiffe"}
    )

    cert: str | None = Field(None, description="PEM file: our certificate chain.")
    key: str | None = Field(None, description="PEM file: its private key.")
    root: str | None = Field(
        None, description="PEM file: authorities of the peer; absent: the system's."
    )
    hostname: str | None = Field(None, description="The name to verify; absent: the dialled host.")
    insecure_host: bool = Field(
        False,
        description="Makes no difference: workers are verified by the SPIFFE ID of their assignment, "
        "the control plane by its name.",
    )
    alpn: list[str] | None = unused()


class BackendPolicies(Part):
    """Policies of one dialled peer."""

    backend_tls: BackendTLS = Field(BackendTLS(), alias="backendTLS")
