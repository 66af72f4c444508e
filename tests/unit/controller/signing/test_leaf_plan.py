from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.leaf_plan import Wanted, WorkerPod, plan_leaves, wanted_leaves
from atenet.identity.authority import Authority
from atenet.identity.credential import Credential, issue

from tests.unit.controller.signing.asking import NOW

AUTHORITIES = {name: Authority.create(name, now=NOW) for name in names.SIGNED_HERE}
ACCOUNTS = {"ate-api-server": "1", "atenet-router": "2", "atenet-egress": "3"}


def pod(name: str = "pool-1", **changed: Any) -> WorkerPod:
    found = {
        "namespace": "default",
        "uid": "uid",
        "service_account": "pool",
        "mounts": frozenset({f"ate-identity-{name}"}),
    }
    return WorkerPod(name=name, **{**found, **changed})


def issued(wanted: Wanted, at: datetime, authority: Authority | None = None) -> Credential:
    signer = authority or AUTHORITIES[wanted.authority]
    return Credential.parse(issue(wanted.want, signer, now=at), Path("Secret"))


def test_components_have_their_own_certificate_and_their_services() -> None:
    found = {each.secret: each for each in wanted_leaves(ACCOUNTS, [])}
    assert set(found) == {
        f"{kind}-{name}"
        for kind, many in (
            ("ate-identity", ["ate-api-server", "atenet-router", "atenet-egress"]),
            ("ate-serving", ["api", "atenet-router", "atenet-egress"]),
        )
        for name in many
    }
    assert found["ate-serving-api"].want.dns == ("api.ate-system.svc",)
    assert found["ate-identity-atenet-router"].owner.name == "atenet-router"


def test_a_component_that_is_not_installed_has_none() -> None:
    assert wanted_leaves({}, []) == []


def test_a_worker_has_one_that_goes_with_its_pod() -> None:
    (found,) = wanted_leaves({}, [pod()])
    assert (found.namespace, found.secret) == ("default", "ate-identity-pool-1")
    assert found.want.uri == "spiffe://cluster.local/ns/default/sa/pool"
    assert (found.owner.kind, found.owner.uid) == ("Pod", "uid")


@pytest.mark.parametrize(
    "odd",
    [
        pod(mounts=frozenset()),
        pod(mounts=frozenset({"ate-identity-pool-2"})),
        pod(over=True),
        pod(service_account="a.b"),
        pod(namespace="ate-system", service_account="atelet"),
    ],
)
def test_a_pod_that_does_not_ask_or_may_not_has_none(odd: WorkerPod) -> None:
    assert wanted_leaves({}, [odd]) == []


def test_a_pod_by_a_components_name_gets_nothing_of_it() -> None:
    sly = pod("atenet-router", namespace="ate-system")
    found = {each.secret: each for each in wanted_leaves(ACCOUNTS, [sly])}
    assert found["ate-identity-atenet-router"].owner.kind == "ServiceAccount"


def test_what_is_fresh_is_left_and_what_is_late_or_unreadable_is_issued() -> None:
    api, router, pool = wanted_leaves(ACCOUNTS, [pod()])[0:5:2]
    found = {
        (api.namespace, api.secret): issued(api, NOW),
        (router.namespace, router.secret): issued(router, NOW - timedelta(hours=17)),
        (pool.namespace, pool.secret): None,
    }
    plan = plan_leaves([api, router, pool], found, AUTHORITIES, NOW)
    assert plan.issue == (router, pool)
    assert plan.remove == ()


def test_after_a_switch_all_are_issued_anew() -> None:
    (wanted,) = wanted_leaves({}, [pod()])
    old = issued(wanted, NOW, Authority.create("pod-identity", now=NOW))
    plan = plan_leaves([wanted], {(wanted.namespace, wanted.secret): old}, AUTHORITIES, NOW)
    assert plan.issue == (wanted,)


def test_a_secret_whose_pod_is_gone_goes_too() -> None:
    plan = plan_leaves([], {("default", "ate-identity-pool-1"): None}, AUTHORITIES, NOW)
    assert plan.remove == (("default", "ate-identity-pool-1"),)
