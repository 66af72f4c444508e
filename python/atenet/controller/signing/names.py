"""What identity is called in a cluster: authorities, signers, Secrets, bundles, and who serves which name."""

from __future__ import annotations

from atenet.errors import AteError
from atenet.identity import spiffe

__all__ = [
    "ACTOR_IDENTITY",
    "ALL_AUTHORITIES",
    "AUTHORITIES_MAP",
    "BUNDLE_KEY",
    "CONTROLLER",
    "INTERCEPTION",
    "NAMESPACE",
    "POD_IDENTITY",
    "SERVICE_DNS",
    "SIGNED_HERE",
    "TRUST_LABEL",
    "TRUST_MAP",
    "WANTS_TRUST_LABEL",
    "WORKERS_LABEL",
    "authority_secret",
    "check_authority_name",
    "cluster_bundle",
    "identity_secret",
    "served_name",
    "services",
    "serving_secret",
    "signer",
    "trust_key",
]

NAMESPACE = "ate-system"
CONTROLLER = "ate-controller"

POD_IDENTITY = "pod-identity"
SERVICE_DNS = "service-dns"
ACTOR_IDENTITY = "actor-identity"
INTERCEPTION = "interception"
ALL_AUTHORITIES = (POD_IDENTITY, SERVICE_DNS, ACTOR_IDENTITY, INTERCEPTION)
# The other two are their users' alone: ateapi's, and the egress gateway's or its minter's.
SIGNED_HERE = (POD_IDENTITY, SERVICE_DNS)

# The certificates of all authorities, in the installation's namespace: what is copied from.
AUTHORITIES_MAP = "ate-authorities"
# The copy in each namespace whose pods verify somebody.
TRUST_MAP = "ate-trust"
TRUST_LABEL = "ate.dev/trust-bundle"
WANTS_TRUST_LABEL = "ate.dev/trust"
# Namespaces that ate-setup made ready for worker pools.
WORKERS_LABEL = "ate.dev/workers"

# A Secret's key, which is also the file's name where it is mounted.
BUNDLE_KEY = "credential-bundle.pem"

# Which Service each service account's pods stand behind. The authority signs these names for
# these accounts, and for nobody else.
_SERVICES = {
    "ate-api-server": ("api", spiffe.API_SERVER_NAME),
    "atenet-router": ("atenet-router", spiffe.ROUTER_SERVER_NAME),
    "atenet-egress": ("atenet-egress", spiffe.EGRESS_SERVER_NAME),
    "ate-credentials": ("ate-credentials", spiffe.CREDENTIALS_SERVER_NAME),
}


def signer(authority: str) -> str:
    """The signer's name in requests and trust bundles."""
    return f"ate.dev/{authority}"


def authority_secret(authority: str) -> str:
    """The Secret with the authority's keys: `current.pem`, and `next.pem` while it is rotated."""
    return f"ate-authority-{authority}"


def trust_key(authority: str) -> str:
    """The authority's bundle in AUTHORITIES_MAP and TRUST_MAP: a file where they are mounted."""
    return f"{authority}.pem"


def cluster_bundle(authority: str) -> str:
    """The ClusterTrustBundle with the same certificates."""
    return f"ate.dev:{authority}:trust"


def identity_secret(workload: str) -> str:
    """Where pod certificates are not served: of a service account, or of one worker pod."""
    return f"ate-identity-{workload}"


def serving_secret(service: str) -> str:
    """Where pod certificates are not served: a Service's certificate."""
    return f"ate-serving-{service}"


def services() -> dict[str, str]:
    """Service -> the account that its pods run as."""
    return {service: account for account, (service, _) in _SERVICES.items()}


def served_name(namespace: str, service_account: str) -> str | None:
    """The DNS name that clients of this account's Service expect; None: it backs none."""
    if namespace != NAMESPACE or service_account not in _SERVICES:
        return None
    return _SERVICES[service_account][1]


def check_authority_name(name: str) -> None:
    """Raises AteError."""
    if name not in ALL_AUTHORITIES:
        raise AteError(f"no authority {name!r}", hint=f"one of {', '.join(ALL_AUTHORITIES)}")
