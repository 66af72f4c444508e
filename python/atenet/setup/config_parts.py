"""The nested parts of an installation's configuration. Pure."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator

from atenet.controller.pool import Resources as PoolResources
from atenet.controller.pool import WorkerPoolSpec
from atenet.strict import Strict

__all__ = [
    "Images",
    "PeopleTokens",
    "Pool",
    "Resources",
    "ResourcesByContainer",
    "Scheduling",
    "label",
]

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")


def label(given: str) -> str:
    """The same. Raises ValueError: it is no name."""
    if not _LABEL.fullmatch(given):
        raise ValueError(
            f"{given!r} is no name: 1-63 of a-z, 0-9 and -, a letter or digit at each end"
        )
    return given


class Images(Strict):
    """Whole image references, e.g. with a digest."""

    ateapi: str | None = None
    ate_controller: str | None = None
    atelet: str | None = None
    ateworker: str | None = None
    atenet: str | None = None


class Resources(Strict):
    """As Kubernetes has them."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}

    @field_validator("requests", "limits", mode="before")
    @classmethod
    def _quantities(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        texts = {str(name): str(amount) for name, amount in given.items()}
        for name, amount in texts.items():
            if not _QUANTITY.fullmatch(amount):
                raise ValueError(f"{name}: {amount!r} is no quantity such as 500m or 1Gi")
        return texts


def _asks(cpu: str, memory: str, limit: str) -> Any:
    # A limit of processor time makes tails long and guards nobody that requests do not guard.
    made = Resources(requests={"cpu": cpu, "memory": memory}, limits={"memory": limit})
    return Field(made, description=f"Default: {cpu} CPU, {memory}, at most {limit}.")


class ResourcesByContainer(Strict):
    """Where the numbers are from: docs/kubernetes/sizing.md."""

    ateapi: Resources = _asks("500m", "256Mi", "1Gi")
    ate_controller: Resources = _asks("100m", "192Mi", "768Mi")
    atelet: Resources = _asks("200m", "192Mi", "2Gi")
    router: Resources = _asks("200m", "128Mi", "512Mi")
    envoy: Resources = _asks("500m", "256Mi", "2Gi")
    agentgateway: Resources = _asks("500m", "128Mi", "1Gi")
    egress: Resources = _asks("200m", "192Mi", "768Mi")
    sdsmint: Resources = _asks("50m", "96Mi", "768Mi")
    credentials: Resources = _asks("50m", "96Mi", "256Mi")


class Scheduling(Strict):
    """As in a pod's specification."""

    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    priority_class_name: str | None = None


class PeopleTokens(Strict):
    """OpenID Connect: `ateapi --token-...` (docs/ateapi.md)."""

    issuer: str = Field(description="The https URL of the issuer.")
    audiences: list[str] = Field(
        min_length=1, description="Whom a token must be for: one of these."
    )
    role_claim: str = Field("roles", description="The claim that gives roles, by name or path.")
    roles: list[str] = Field(
        min_length=1, description="<value of that claim>=<owner, editor or viewer>."
    )


class Pool(Strict, WorkerPoolSpec):
    """A WorkerPool that ate-setup keeps: its specification, under a name. Others may be made with kubectl."""

    name: str = Field(description="Its name, which is also its ServiceAccount's.")
    namespace: str = Field("ate-workers", description="One of workerNamespaces.")
    resources: PoolResources = Field(
        PoolResources(
            requests={"cpu": "1", "memory": "1Gi"},
            limits={"memory": "4Gi"},
        ),
        description="Of each Worker Pod: its actors' processor time and memory are in it.",
    )

    @field_validator("name", "namespace")
    @classmethod
    def _names(cls, given: str) -> str:
        return label(given)

    @field_validator("name", "service_account_name")
    @classmethod
    def _an_account_of_its_own(cls, given: str | None) -> str | None:
        if given == "default":
            raise ValueError(
                "default is the account of every pod that names none: workers need one of their own"
            )
        return given

    @property
    def account(self) -> str:
        """The ServiceAccount of its workers."""
        return self.service_account_name or self.name

    def spec(self) -> dict[str, Any]:
        """What it says beyond the defaults; what it leaves open, such as replicas, others may set."""
        without = self.model_dump(
            by_alias=True, exclude={"name", "namespace"}, exclude_defaults=True
        )
        resources = self.resources.model_dump(by_alias=True, exclude_defaults=True)
        return {**without, "resources": resources}
