from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.request import Denial, Grant, decide
from atenet.identity.authority import Usage
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.controller.signing.asking import asked, facts, stub_csr


def granted(**changed: Any) -> Grant:
    decision = decide(asked(**changed), facts(of_pod=_of_pod(changed)))
    assert isinstance(decision, Grant)
    return decision


def _of_pod(changed: dict[str, Any]) -> dict[str, str]:
    return {k: changed[k] for k in ("service_account", "node") if k in changed}


def test_a_workers_certificate_says_who_it_is_and_serves() -> None:
    grant = granted()
    assert grant.want.uri == "spiffe://cluster.local/ns/default/sa/pool"
    assert grant.want.dns == ("pool.default.pod.cluster.local",)
    assert grant.want.usages == (Usage.CLIENT, Usage.SERVER)
    assert grant.lifetime == timedelta(hours=24)


def test_an_agents_certificate_also_names_the_node_that_its_pod_is_on() -> None:
    grant = granted(
        namespace="ate-system", service_account="atelet", node="ip-10-0-0-1.ec2.internal"
    )
    assert grant.want.dns == (
        "atelet.ate-system.pod.cluster.local",
        "ip-10-0-0-1.ec2.internal.atelet.ate-system.pod.cluster.local",
    )


def test_no_other_pods_certificate_names_a_node() -> None:
    for namespace, account in (("default", "atelet"), ("ate-system", "atenet-router")):
        assert len(granted(namespace=namespace, service_account=account).want.dns) == 1


@pytest.mark.parametrize("account", ["atenet-router", "atenet-egress", "ate-api-server"])
def test_those_who_only_dial_get_no_servers_usage(account: str) -> None:
    grant = granted(namespace="ate-system", service_account=account)
    assert grant.want.usages == (Usage.CLIENT,)


@pytest.mark.parametrize(
    ("account", "name"),
    [
        ("ate-api-server", "api.ate-system.svc"),
        ("atenet-router", "atenet-router.ate-system.svc"),
        ("atenet-egress", "atenet-egress.ate-system.svc"),
        ("ate-credentials", "ate-credentials.ate-system.svc"),
    ],
)
def test_a_services_name_goes_to_the_account_behind_it(account: str, name: str) -> None:
    grant = granted(authority=names.SERVICE_DNS, namespace="ate-system", service_account=account)
    assert (grant.want.uri, grant.want.dns) == (None, (name,))
    assert grant.want.usages == (Usage.SERVER,)


@pytest.mark.parametrize(
    ("namespace", "account"),
    [("default", "atenet-router"), ("ate-system", "atelet"), ("ate-system", "default")],
)
def test_nobody_else_gets_a_services_name(namespace: str, account: str) -> None:
    changed = {"namespace": namespace, "service_account": account}
    decision = decide(asked(authority=names.SERVICE_DNS, **changed), facts(of_pod=_of_pod(changed)))
    assert isinstance(decision, Denial)
    assert decision.reason == "NotServing"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"pod": None}, "PodNotFound"),
        ({"of_pod": {"uid": "another"}}, "PodReplaced"),
        ({"of_pod": {"over": True}}, "PodFinished"),
        ({"of_pod": {"service_account": "default"}}, "ServiceAccountMismatch"),
        ({"service_account_uid": "another"}, "ServiceAccountMismatch"),
        ({"service_account_uid": None}, "ServiceAccountMismatch"),
        ({"of_pod": {"node": "node-2"}}, "NodeMismatch"),
        ({"of_pod": {"node": ""}}, "NodeMismatch"),
        ({"node_uid": "another"}, "NodeMismatch"),
        ({"node_uid": None}, "NodeMismatch"),
    ],
)
def test_whoever_is_not_who_the_request_says_is_denied(
    changed: dict[str, Any], reason: str
) -> None:
    decision = decide(asked(), facts(**changed))
    assert isinstance(decision, Denial)
    assert decision.reason == reason


def test_an_account_that_no_id_can_be_made_of_is_denied_by_name() -> None:
    changed = {"service_account": "with.dots"}
    decision = decide(asked(**changed), facts(of_pod=changed))
    assert isinstance(decision, Denial)
    assert decision.reason == "NameNotUsable"
    assert "with.dots" in decision.message


def test_annotations_are_not_ignored_but_denied() -> None:
    decision = decide(asked(annotations={"example.com/san": "x"}), facts())
    assert isinstance(decision, Denial)
    assert decision.reason == "InvalidUnverifiedUserAnnotations"


@pytest.mark.parametrize(
    "key",
    [
        ed25519.Ed25519PrivateKey.generate(),
        rsa.generate_private_key(65537, 3072),
        ec.generate_private_key(ec.SECP256K1()),
    ],
    ids=["ed25519", "rsa", "secp256k1"],
)
def test_keys_that_nobody_here_verifies_are_denied_with_a_hint(key: Any) -> None:
    decision = decide(asked(csr=stub_csr(key)), facts())
    assert isinstance(decision, Denial)
    assert decision.reason == "UnsupportedKeyType"
    assert "ECDSAP256" in decision.message


@pytest.mark.parametrize("csr", ["!", b64encode(b"no request").decode()])
def test_what_is_no_request_is_denied(csr: str) -> None:
    assert isinstance(decide(asked(csr=csr), facts()), Denial)


def test_names_in_the_csr_count_for_nothing() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "atenet-router")])
    assert granted(csr=stub_csr(name=name)).want == granted().want


def test_a_shorter_life_is_granted_and_a_longer_one_is_not() -> None:
    assert granted(max_seconds=3600).lifetime == timedelta(hours=1)
    assert granted(max_seconds=7_862_400).lifetime == timedelta(hours=24)


_words = st.sampled_from(
    ["pool", "atelet", "atenet-router", "ate-system", "default", "a.b", "A", ""]
)
_CSR = stub_csr()


@given(st.data())
def test_whatever_is_granted_is_what_the_api_server_knows(data: st.DataObject) -> None:
    """Any request and any facts: a grant means that all agree, and names nobody else."""
    draw = data.draw
    request = asked(
        authority=draw(st.sampled_from(names.SIGNED_HERE)),
        namespace=draw(_words),
        service_account=draw(_words),
        node=draw(_words),
        pod_uid=draw(st.sampled_from(["pod-uid", "other"])),
        csr=_CSR,
    )
    so = facts(
        of_pod={"service_account": draw(_words), "node": draw(_words), "over": draw(st.booleans())}
    )
    decision = decide(request, so)
    if isinstance(decision, Denial):
        assert decision.reason.isalnum()
        return
    assert so.pod is not None
    assert (so.pod.uid, so.pod.service_account, so.pod.node, so.pod.over) == (
        request.pod_uid,
        request.service_account,
        request.node,
        False,
    )
    if request.authority == names.POD_IDENTITY:
        own = f"spiffe://cluster.local/ns/{request.namespace}/sa/{so.pod.service_account}"
        assert decision.want.uri == own
        suffix = f"{so.pod.service_account}.{request.namespace}.pod.cluster.local"
        assert all(each in (suffix, f"{so.pod.node}.{suffix}") for each in decision.want.dns)
    else:
        assert decision.want.uri is None
        assert request.namespace == "ate-system"
        assert decision.want.dns == (f"{so.pod.service_account}.ate-system.svc",)
