"""What ate-controller, ate-credentials and, where it must, an agent may ask of the API server; others nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atenet.controller.signing import names as identity
from atenet.setup.config import Config
from atenet.setup.objects.names import NAMESPACE, Component, Object, metadata

__all__ = ["AUTHORITIES", "SIGNERS", "rbac"]

AUTHORITIES = ("pod-identity", "service-dns", "actor-identity", "interception")
# What ate-controller signs for; the keys of the others are those of ateapi and of the egress gateway.
SIGNERS = ("pod-identity", "service-dns")
_READ = ("get", "list", "watch")

Rule = dict[str, Any]


def rbac(config: Config, *, pod_certificates: bool) -> list[Object]:
    """Roles and their bindings."""
    name = Component.CONTROLLER.value
    made = _everywhere(name, Component.CONTROLLER, _cluster_rules(pod_certificates))
    made += _within(NAMESPACE, name, _own_rules(pod_certificates))
    for namespace in config.worker_namespaces:
        made += _within(namespace, name, _worker_rules(pod_certificates))
    for namespace in config.credential_namespaces:
        made += _within(
            namespace, Component.CREDENTIALS.value, _secret_rules(), Component.CREDENTIALS
        )
    if not pod_certificates:
        made += _everywhere("atelet", Component.ATELET, _agent_rules())
    return made


def _cluster_rules(pod_certificates: bool) -> list[Rule]:
    """Reading what it reacts to, and what only exists in the whole cluster."""
    rules = [
        _rule("ate.dev", ["workerpools"], _READ),
        _rule("ate.dev", ["workerpools/status"], ("get", "update", "patch")),
        _rule("", ["pods", "nodes", "namespaces", "serviceaccounts"], _READ),
        # Trust bundles go to each namespace that asks for them by its label.
        _rule("", ["configmaps"], (*_READ, "update", "patch", "delete"), ["ate-trust"]),
        _rule("", ["configmaps"], ("create",)),
        _rule("", ["events"], ("create", "patch")),
        _rule("events.k8s.io", ["events"], ("create", "patch")),
    ]
    return rules + (_pod_certificates() if pod_certificates else _signing_requests())


def _pod_certificates() -> list[Rule]:
    group = "certificates.k8s.io"
    bundles = [f"ate.dev:{each}:trust" for each in AUTHORITIES]
    return [
        _rule(group, ["podcertificaterequests"], _READ),
        _rule(group, ["podcertificaterequests/status"], ("update", "patch")),
        _rule(group, ["signers"], ("sign",), [f"ate.dev/{each}" for each in SIGNERS]),
        _rule(group, ["signers"], ("attest",), [f"ate.dev/{each}" for each in AUTHORITIES]),
        _rule(group, ["clustertrustbundles"], _READ),
        _rule(group, ["clustertrustbundles"], ("create",)),
        _rule(group, ["clustertrustbundles"], ("update", "patch", "delete"), bundles),
    ]


def _signing_requests() -> list[Rule]:
    group = "certificates.k8s.io"
    return [
        _rule(group, ["certificatesigningrequests"], _READ),
        _rule(
            group,
            ["certificatesigningrequests/status", "certificatesigningrequests/approval"],
            ("update", "patch"),
        ),
        _rule(group, ["signers"], ("approve", "sign"), ["ate.dev/pod-identity"]),
    ]


def _own_rules(pod_certificates: bool) -> list[Rule]:
    """In the components' namespace. Never all Secrets: the database's password and others' keys are there."""
    keys = [f"ate-authority-{each}" for each in SIGNERS]
    rules = [
        _rule("", ["secrets"], ("get", "update", "patch"), keys),
        _rule("", ["configmaps"], ("get", "update", "patch"), ["ate-authorities"]),
        _rule("coordination.k8s.io", ["leases"], ("get", "update", "patch"), ["ate-controller"]),
        _rule("coordination.k8s.io", ["leases"], ("create",)),
    ]
    if not pod_certificates:
        services = identity.services()
        issued = [identity.identity_secret(account) for account in services.values()]
        issued += [identity.serving_secret(service) for service in services]
        rules += [
            _rule("", ["secrets"], ("get", "update", "patch", "delete"), issued),
            _rule("", ["secrets"], ("create",)),
        ]
    return rules


def _worker_rules(pod_certificates: bool) -> list[Rule]:
    """In a namespace of worker pools."""
    rules = [
        _rule("", ["pods"], ("create", "delete", "patch")),
        _rule("ate.dev", ["workerpools"], ("update", "patch")),
        _rule("ate.dev", ["workerpools/finalizers"], ("update",)),
    ]
    if not pod_certificates:
        rules.append(_rule("", ["secrets"], (*_READ, "create", "update", "patch", "delete")))
    return rules


def _agent_rules() -> list[Rule]:
    return [
        _rule("certificates.k8s.io", ["certificatesigningrequests"], ("create", "get", "watch"))
    ]


def _secret_rules() -> list[Rule]:
    """One that is named is read; which there are nobody is told."""
    return [_rule("", ["secrets"], ("get",))]


def _rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> Rule:
    rule: Rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    return rule


def _everywhere(name: str, component: Component, rules: list[Rule]) -> list[Object]:
    whole = metadata(f"atenet-{name}", component, namespace=None)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": whole,
        "rules": rules,
    }
    return [role, _binding("ClusterRoleBinding", whole, "ClusterRole", component)]


def _within(
    namespace: str,
    name: str,
    rules: list[Rule],
    component: Component = Component.CONTROLLER,
) -> list[Object]:
    here = metadata(name, component, namespace=namespace)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": here,
        "rules": rules,
    }
    return [role, _binding("RoleBinding", here, "Role", component)]


def _binding(kind: str, meta: Object, role: str, component: Component) -> Object:
    subject = {
        "kind": "ServiceAccount",
        "name": component.account,
        "namespace": NAMESPACE,
    }
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": meta["name"]},
        "subjects": [subject],
    }
