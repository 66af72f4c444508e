"""The CustomResourceDefinition of `WorkerPool`, generated from its model."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from atenet.controller.pool import (
    GROUP,
    KIND,
    PLURAL,
    VERSION,
    WorkerPoolSpec,
    WorkerPoolStatus,
)

__all__ = ["crd", "schema_of"]

# The names of its pods are the pool's, a dash and eight characters, and names of workers too.
MAX_NAME = 54
_NAME_RULE = {
    "rule": f"self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{{0,{MAX_NAME - 2}}}[a-z0-9])?$')",
    "message": f"metadata.name must be a label of at most {MAX_NAME} characters: workers are named after it",
}
_ACCOUNT_RULE = {
    "rule": "self.metadata.name != 'default' || has(self.spec.serviceAccountName)",
    "message": "a pool must not be called default without a serviceAccountName: every pod of the "
    "namespace that names no account would have its workers' identity",
}
_COLUMNS = (
    ("Class", ".spec.sandboxClass", "string"),
    ("Replicas", ".spec.replicas", "integer"),
    ("Ready", ".status.readyReplicas", "integer"),
    ("Updated", ".status.updatedReplicas", "integer"),
    ("Draining", ".status.drainingReplicas", "integer"),
    ("Age", ".metadata.creationTimestamp", "date"),
)


def crd() -> dict[str, Any]:
    """As it is applied. `status` and `scale` are subresources."""
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            # Kubernetes knows these; the name is spelled out for the rule below to see it.
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": schema_of(WorkerPoolSpec),
            "status": schema_of(WorkerPoolStatus),
        },
        "x-kubernetes-validations": [_NAME_RULE, _ACCOUNT_RULE],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "jsonPath": path, "type": kind} for name, path, kind in _COLUMNS
        ],
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": ["wp"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """A structural schema: no references, no unions with null, no titles."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    structural: dict[str, Any] = _structural(schema, definitions)
    return structural


def _structural(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_structural(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _structural({**definitions[node["$ref"].rpartition("/")[2]], **beside}, definitions)
    variants = [one for one in node.get("anyOf", ()) if one != {"type": "null"}]
    if len(variants) == 1:  # it may be absent, which null would mean
        beside = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
        return _structural({**variants[0], **beside}, definitions)
    made = {
        key: (
            {name: _structural(one, definitions) for name, one in value.items()}
            if key == "properties"
            else _structural(value, definitions)
        )
        for key, value in node.items()
        # Kubernetes refuses or prunes what is not named; that is no word of its schemas.
        if key not in ("title", "propertyNames") and (key, value) != ("additionalProperties", False)
    }
    return _defaulted(made)


def _defaulted(node: dict[str, Any]) -> dict[str, Any]:
    """Members' defaults only count in an object that is there; rules look at the whole of it."""
    members = node.get("properties", {})
    if node.get("type") == "object" and members and all("default" in m for m in members.values()):
        node.setdefault("default", {name: member["default"] for name, member in members.items()})
    return node
