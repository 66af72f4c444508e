"""Whose Secrets actors' rules may have, and who gives them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import Field, field_validator

from atenet.setup.config_parts import label
from atenet.strict import Strict

__all__ = ["CredentialProvider", "check_class", "check_grants", "given_namespaces", "own_provider"]

_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
# Bootstrap tokens are there, and controllers' keys.
_CLUSTERS_OWN = "kube-system"


class CredentialProvider(Strict):
    """credprovider.CredentialProvider over mTLS."""

    address: str = Field(description="host:port.")
    uri_authority: str = Field(
        description="The class of the URIs it serves: ate-secret://CLASS/..."
    )
    server_name: str | None = Field(
        None, description="The DNS name that its certificate must carry; default: the host."
    )

    @field_validator("address")
    @classmethod
    def _host_and_port(cls, given: str) -> str:
        host, _, port = given.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{given!r} is not host:port")
        return given

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def check_grants(given: list[str]) -> list[str]:
    """Each once. Raises ValueError for one that is not `ATESPACE=NAMESPACE`."""
    for each in given:
        atespace, equals, namespace = each.partition("=")
        if not equals:
            raise ValueError(f"{each!r} must be ATESPACE=NAMESPACE")
        label(atespace)
        label(namespace)
    return list(dict.fromkeys(given))


def given_namespaces(grants: Iterable[str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """Those of the grants. Raises ValueError for one of `keys`: namespaces of the installation's own."""
    found = tuple(dict.fromkeys(each.partition("=")[2] for each in grants))
    for namespace in found:
        if namespace in (_CLUSTERS_OWN, *keys):
            raise ValueError(
                f"credentialAllow must not have {namespace}: its Secrets are keys of the installation "
                "or of the cluster; keep those of actors in a namespace of their own"
            )
    return found


def check_class(given: str) -> str:
    """Raises ValueError."""
    if not _DNS_NAME.fullmatch(given):
        raise ValueError(f"{given!r} is no DNS name in small letters, such as kubernetes.io")
    return given


def own_provider(namespace: str, uri_class: str) -> CredentialProvider:
    """ate-credentials, as the gateway is told of it."""
    address = f"ate-credentials.{namespace}.svc:443"
    return CredentialProvider(address=address, uriAuthority=uri_class)
