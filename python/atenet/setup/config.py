"""What an installation can be told: every key of the values file, its default and its why. Pure."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from atenet import __version__
from atenet.flags import seconds
from atenet.setup.config_credentials import (
    CredentialProvider,
    check_class,
    check_grants,
    given_namespaces,
    own_provider,
)
from atenet.setup.config_parts import (
    Images,
    PeopleTokens,
    Pool,
    ResourcesByContainer,
    Scheduling,
)
from atenet.strict import Strict

__all__ = ["NAMESPACE", "Config"]

# Names of certificates and roles are made from it (CONTRACT: api.ate-system.svc, ns/ate-system/sa/...).
NAMESPACE = "ate-system"

_SPIFFE_ID = re.compile(r"spiffe://[a-z0-9._-]{1,255}(/[A-Za-z0-9._-]+)+")
Seconds = Annotated[float, BeforeValidator(seconds)]
# What requests in the air have beyond the longest wait of a parked one; and what tunnels out have.
_ROUTER_MARGIN, _EGRESS_DRAIN = 15.0, 20.0


class Config(Strict):
    """One installation. Scalars and lists of text are flags too."""

    namespace: str = Field(NAMESPACE, description="Where the components go.")
    atenet_dataplane: Literal["envoy", "agentgateway"] = Field(
        "envoy", description="The proxy of atenet-router and atenet-egress."
    )
    ingress_allowed_spiffe_ids: list[str] = Field(
        [],
        description="SPIFFE IDs of the clients that the Envoy router lets in: the whole policy. "
        "Repeatable, or separated by commas.",
    )

    image_registry: str = Field(
        "localhost/atenet", description="Where the images are: <registry>/<image>:<tag>."
    )
    image_tag: str = Field(__version__, description="The images' tag.")
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        "IfNotPresent", description="When nodes fetch images."
    )
    image_pull_secrets: list[str] = Field([], description="Secrets to fetch them with.")

    database_url_secret: str = Field(
        "ate-database", description="Secret whose key `url` is the postgresql:// URL of the store."
    )
    database_port: int = Field(5432, ge=1, le=65535, description="Port of the database.")
    database_cidr: list[str] = Field(
        ["0.0.0.0/0", "::/0"], description="Addresses of the database that ateapi may reach."
    )
    snapshots: str = Field("", description="s3://bucket/prefix, where actors sleep. Required.")
    snapshots_secret: str | None = Field(
        None,
        description="Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; without it: the "
        "pods' own identity in the cloud.",
    )
    snapshots_region: str | None = Field(None, description="The bucket's region.")
    snapshots_endpoint: str | None = Field(
        None, description="https URL of the object store, where it is not Amazon's."
    )
    snapshots_cidr: list[str] = Field(
        ["0.0.0.0/0", "::/0"], description="Addresses of the object store that may be reached."
    )

    api_replicas: int = Field(2, ge=1, description="Control planes.")
    controller_replicas: int = Field(2, ge=1, description="Controllers; one of them works.")
    router_replicas: int = Field(2, ge=1, description="Ingress routers.")
    egress_replicas: int = Field(2, ge=1, description="Egress gateways.")
    default_sandbox: Literal["process", "gvisor"] = Field(
        "process", description="Sandbox class of templates that name none."
    )
    role: list[str] = Field(
        [], description="<spiffe-id>=<role>: gives an id a role besides the built-in ones."
    )
    issuer: str | None = Field(
        None, description="The https URL that actors' tokens name as issuer; without it: no tokens."
    )
    token_keys_secret: str | None = Field(
        None, description="Secret whose key `seal` seals the keys that sign actors' tokens."
    )
    people: PeopleTokens | None = Field(None, description="People who show OpenID Connect tokens.")

    router_service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        "ClusterIP", description="How the router is reached."
    )
    router_service_annotations: dict[str, str] = Field({}, description="For a load balancer.")
    proxy_threads: int = Field(
        2,
        ge=1,
        description="Threads of each proxy; without a limit of its own it would take one for each core of its node.",
    )
    parked_request_budget: Seconds = Field(
        5.0, gt=0, description="How long a request waits for its actor to become routable."
    )
    parked_request_max: int = Field(1024, ge=0, description="Requests that wait at most.")
    drain_delay: Seconds = Field(
        13.0,
        ge=0,
        description="Not ready but serving on, while a pod's removal spreads through the cluster.",
    )
    egress_allow_cidr: list[str] = Field(
        [], description="Addresses that actors may be connected to although they are not public."
    )
    egress_name_server: list[str] = Field(
        [], description="Who resolves origins' names; without it: the cluster's DNS."
    )
    credential_provider: CredentialProvider | None = Field(
        None,
        description="Who is asked for the secrets that policies put into requests: one of yours, in place of "
        "credentialAllow.",
    )
    credential_allow: list[str] = Field(
        [],
        description="<atespace>=<namespace>: rules of that atespace's actors may have Secrets of that namespace. "
        "With one, ate-credentials is installed, which gives them to the egress gateway.",
    )
    credential_class: str = Field(
        "kubernetes.io",
        description="The class of its URIs: ate-secret://CLASS/secret/NAMESPACE/SECRET/KEY.",
    )
    credential_replicas: int = Field(2, ge=1, description="Instances of ate-credentials.")

    worker_namespaces: list[str] = Field(
        ["ate-workers"], description="Namespaces that worker pools may be in."
    )
    pools: list[Pool] = Field([Pool(name="general")], description="Worker pools.")
    pod_certificates: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Certificates by PodCertificateRequest, or (off) as Secrets; auto asks the cluster.",
    )
    cluster_dns_namespace: str = Field("kube-system", description="Where the cluster's DNS runs.")
    metrics_namespaces: list[str] = Field(
        [], description="Namespaces that may read /metrics, by name."
    )
    otlp_collector: str | None = Field(None, description="OTLP over HTTP for spans, host:port.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Of every process."
    )

    images: Images = Field(Images(), description="Whole references, in place of registry and tag.")
    resources: ResourcesByContainer = Field(
        ResourcesByContainer(), description="What containers ask for, by container."
    )
    scheduling: Scheduling = Field(Scheduling(), description="Where the components may run.")
    node_scheduling: Scheduling = Field(
        Scheduling(tolerations=[{"operator": "Exists"}]), description="Where atelet runs."
    )

    @field_validator("namespace")
    @classmethod
    def _the_contract_names_it(cls, given: str) -> str:
        if given != NAMESPACE:
            raise ValueError(
                f"must be {NAMESPACE}: certificates, roles and service names say so "
                f"(api.{NAMESPACE}.svc), and every part would start and trust no other; "
                "worker pools may be elsewhere (workerNamespaces)"
            )
        return given

    @field_validator("ingress_allowed_spiffe_ids")
    @classmethod
    def _spiffe_ids(cls, given: list[str]) -> list[str]:
        for each in given:
            if not _SPIFFE_ID.fullmatch(each):
                raise ValueError(f"{each!r} is not a SPIFFE ID (spiffe://<trust domain>/<path>)")
        return list(dict.fromkeys(given))

    @field_validator("snapshots")
    @classmethod
    def _a_bucket(cls, given: str) -> str:
        if given and not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/\S*)?", given):
            raise ValueError(f"{given!r} is not s3://bucket/prefix; nodes share no directory")
        return given

    _grants = field_validator("credential_allow")(check_grants)
    _class = field_validator("credential_class")(check_class)

    @model_validator(mode="after")
    def _secrets_are_for_actors(self) -> Config:
        given_namespaces(self.credential_allow, (self.namespace, *self.worker_namespaces))
        if self.credential_allow and self.credential_provider is not None:
            raise ValueError(
                "credentialAllow and credentialProvider are two answers to one question: leave one out "
                "(`credentialProvider: null` in the values file, or --credential-allow='')"
            )
        return self

    @model_validator(mode="after")
    def _pools_have_a_namespace(self) -> Config:
        for pool in self.pools:
            if pool.namespace not in self.worker_namespaces:
                raise ValueError(
                    f"pool {pool.name}: its namespace {pool.namespace} is not among workerNamespaces"
                )
        if self.namespace in self.worker_namespaces:
            raise ValueError(
                f"workerNamespaces must not have {self.namespace}: workers are privileged"
            )
        return self

    @property
    def credential_namespaces(self) -> tuple[str, ...]:
        """Those whose Secrets ate-credentials reads; none: it is not installed."""
        return given_namespaces(self.credential_allow)

    @property
    def provider(self) -> CredentialProvider | None:
        """Whom the egress gateway asks: ate-credentials, or the one that was named."""
        if self.credential_allow:
            return own_provider(self.namespace, self.credential_class)
        return self.credential_provider

    @property
    def envoy(self) -> bool:
        return self.atenet_dataplane == "envoy"

    @property
    def router_drain(self) -> float:
        """Seconds that the router's drain takes at most, once its delay is over."""
        return self.parked_request_budget + _ROUTER_MARGIN

    @property
    def egress_drain(self) -> float:
        """The same of the egress gateway."""
        return _EGRESS_DRAIN
