from __future__ import annotations

import pytest
from atenet.errors import AteError
from atenet.identity import spiffe


def test_ids_are_spelled_as_the_contract_has_them() -> None:
    assert spiffe.ROUTER_ID == "spiffe://cluster.local/ns/ate-system/sa/atenet-router"
    assert spiffe.API_ID == "spiffe://cluster.local/ns/ate-system/sa/ate-api-server"
    assert spiffe.actor_id("a", "b") == "spiffe://substrate-actor.local/actor/a/b"
    assert (
        spiffe.worker_for_actor_id("a", "b")
        == "spiffe://substrate-actor.local/worker-for-actor/a/b"
    )


def test_a_pod_id_is_read_back() -> None:
    assert spiffe.parse_pod_id(spiffe.pod_id("default", "local")) == ("default", "local")


@pytest.mark.parametrize(
    "odd",
    [
        "spiffe://CLUSTER.local/ns/a/sa/b",
        "SPIFFE://cluster.local/ns/a/sa/b",
        "spiffe://cluster.local/ns/a/sa/b/",
        "spiffe://cluster.local//ns/a/sa/b",
        "spiffe://cluster.local/ns/a/sa/b?x",
        "spiffe://cluster.local:443/ns/a/sa/b",
        "spiffe://cluster.local/ns/a%2e/sa/b",
        "spiffe://other.local/ns/a/sa/b",
        "spiffe://cluster.local/ns/a/sa/b\n",
        "",
    ],
)
def test_other_spellings_are_other_ids(odd: str) -> None:
    with pytest.raises(AteError):
        spiffe.parse_pod_id(odd)


@pytest.mark.parametrize("bad", ["", "A", "a/b", "a" * 64, "-a", "a.b"])
def test_no_id_is_made_of_a_bad_name(bad: str) -> None:
    for make in (spiffe.pod_id, spiffe.actor_id, spiffe.worker_for_actor_id):
        with pytest.raises(AteError, match="not a valid name"):
            make(bad, "ok")
        with pytest.raises(AteError, match="not a valid name"):
            make("ok", bad)


def test_each_pod_id_has_its_own_dns_name() -> None:
    assert spiffe.pod_dns_name(spiffe.ATELET_ID) == "atelet.ate-system.pod.cluster.local"


def test_nodes_may_be_called_by_their_host_names() -> None:
    name = spiffe.node_dns_name(spiffe.ATELET_ID, "ip-10-0-0-1.ec2.internal")
    assert name == "ip-10-0-0-1.ec2.internal.atelet.ate-system.pod.cluster.local"
    assert spiffe.parse_node_dns_name(spiffe.ATELET_ID, name) == "ip-10-0-0-1.ec2.internal"


@pytest.mark.parametrize("bad", ["", "A", "a..b", ".a", "a.", "-a.b", "a/b", "a." * 100 + "a"])
def test_a_node_is_not_called_anything(bad: str) -> None:
    with pytest.raises(AteError, match="not a valid name"):
        spiffe.node_dns_name(spiffe.ATELET_ID, bad)
