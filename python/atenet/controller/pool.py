"""The `WorkerPool` resource: what people write and what the controller reports."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

__all__ = [
    "GROUP",
    "KIND",
    "PLURAL",
    "VERSION",
    "Condition",
    "Drain",
    "Resources",
    "Strategy",
    "Toleration",
    "WorkerPoolSpec",
    "WorkerPoolStatus",
]

GROUP = "ate.dev"
VERSION = "v1alpha1"
KIND = "WorkerPool"
PLURAL = "workerpools"

_LABEL_KEY = (
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
# As Kubernetes' own generated schemas have it.
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)"
    r"|(\.[0-9]+))))?$"
)
Quantity = Annotated[
    int | str,
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": _QUANTITY,
            "x-kubernetes-int-or-string": True,
        }
    ),
]


def _rules(*rules: tuple[str, str]) -> dict[str, Any]:
    """Pairs of a CEL expression and what a person is told where it does not hold."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in rules]}


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class Toleration(_Model):
    """As in a pod."""

    key: str | None = None
    operator: str | None = Field(None, json_schema_extra={"enum": ["Exists", "Equal"]})
    value: str | None = None
    effect: str | None = Field(
        None, json_schema_extra={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}
    )
    toleration_seconds: int | None = Field(None, json_schema_extra={"format": "int64"})


class Resources(_Model):
    """As in a container. The limits (else the requests) of cpu and memory are what its actors share."""

    requests: dict[str, Quantity] = Field(default_factory=dict, max_length=16)
    limits: dict[str, Quantity] = Field(default_factory=dict, max_length=16)


class Strategy(_Model):
    """How workers are replaced when the pool's template changes."""

    model_config = ConfigDict(
        json_schema_extra=_rules(
            (
                "self.maxSurge + self.maxUnavailable > 0",
                "maxSurge and maxUnavailable must not both be 0: nothing could be replaced",
            )
        )
    )
    max_surge: int = Field(1, ge=0, le=1000, description="Workers above replicas meanwhile.")
    max_unavailable: int = Field(
        0, ge=0, le=1000, description="Workers below replicas that may be missing meanwhile."
    )


class Drain(_Model):
    """How a worker is emptied before its pod is deleted."""

    deadline_seconds: int = Field(
        300,
        ge=0,
        le=86400,
        description="After this long the pod is deleted with the actors that are still on it; they "
        "are recovered from what is on the node's disk.",
    )


class WorkerPoolSpec(_Model):
    model_config = ConfigDict(
        json_schema_extra=_rules(
            (
                f"!has(self.labels) || self.labels.all(k, k.matches('^{_LABEL_KEY}$'))",
                "labels: each key must be a label's, such as zone or example.com/zone",
            ),
            (
                f"!has(self.labels) || self.labels.all(k, self.labels[k].matches('^{_LABEL_VALUE}$'))",
                "labels: each value must be a label's: at most 63 letters, digits, '-', '_' and '.'",
            ),
            (
                "!has(self.serviceAccountName) || self.serviceAccountName != 'default'",
                "serviceAccountName must not be default: every pod of the namespace that names no "
                "account would have the workers' identity",
            ),
        )
    )
    replicas: int = Field(1, ge=0, le=1000, description="How many workers take actors.")
    sandbox_class: str = Field(
        "process",
        json_schema_extra={"enum": ["process", "gvisor"]},
        description="process; or gvisor, which keeps memory and runs the process class too.",
    )
    slots: int = Field(4, ge=1, le=1000, description="How many actors each worker holds at a time.")
    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(
        default_factory=dict,
        max_length=32,
        description="Labels of the workers, which selectors of templates and actors match.",
    )
    resources: Resources = Field(default_factory=Resources)
    node_selector: dict[str, str] = Field(default_factory=dict, max_length=32)
    tolerations: list[Toleration] = Field(default_factory=list, max_length=32)
    priority_class_name: str | None = Field(None, max_length=253)
    service_account_name: str | None = Field(
        None,
        max_length=63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="ServiceAccount of the workers, part of their SPIFFE id. Default: the pool's name.",
    )
    image: str | None = Field(
        None, min_length=1, max_length=500, description="Default: the controller's --worker-image."
    )
    strategy: Strategy = Field(default_factory=Strategy)
    drain: Drain = Field(default_factory=Drain)
    node_loss_seconds: int = Field(
        30,
        ge=0,
        le=3600,
        description="How long workers of a node that became unreachable or not ready are waited "
        "for, from when Kubernetes says so, before others take their place.",
    )


class Condition(_Model):
    """As elsewhere in Kubernetes."""

    type: str = Field(max_length=316)
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})
    reason: str = Field(max_length=1024)
    message: str = Field(max_length=32768)
    last_transition_time: str = Field(json_schema_extra={"format": "date-time"})
    observed_generation: int = Field(0, json_schema_extra={"format": "int64"})


class WorkerPoolStatus(_Model):
    observed_generation: int = Field(0, json_schema_extra={"format": "int64"})
    replicas: int = Field(0, description="Worker pods that are not on their way out.")
    ready_replicas: int = Field(0, description="Of these, those that take actors.")
    updated_replicas: int = Field(0, description="Of these, those of the present template.")
    draining_replicas: int = Field(0, description="Worker pods on their way out.")
    selector: str = Field("", description="The pods of this pool, for what scales it.")
    conditions: list[Condition] = Field(
        default_factory=list,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )
