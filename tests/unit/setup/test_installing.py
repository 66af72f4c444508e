"""What an earlier configuration left over, and what becomes of it."""

from __future__ import annotations

from atenet.setup.installing import leftovers, what_happened
from atenet.setup.inventory import Inventory
from atenet.setup.kinds import Reference, reference

from tests.unit.setup.rendered import Object, config, rendered


def references(objects: list[Object]) -> frozenset[Reference]:
    return frozenset(map(reference, objects))


def test_a_switch_leaves_over_what_the_other_dataplane_alone_has() -> None:
    envoy, native = references(rendered(config())), references(rendered(config("agentgateway")))
    files = [
        Reference("ConfigMap", "atenet-egress", "ate-system"),
        Reference("ConfigMap", "atenet-router", "ate-system"),
    ]
    assert leftovers(Inventory(native), envoy, native) == files
    assert leftovers(Inventory(envoy), native, envoy) == []


def test_what_carries_our_labels_is_found_also_when_nobody_wrote_it_down() -> None:
    wanted = references(rendered(config()))
    stray = Reference("ConfigMap", "atenet-router", "ate-system")
    assert leftovers(Inventory(), wanted, [*wanted, stray]) == [stray]


def test_what_was_written_down_is_found_also_when_it_lost_its_labels() -> None:
    wanted = references(rendered(config()))
    lost = Reference("NetworkPolicy", "old", "ate-system")
    assert leftovers(Inventory(wanted | {lost}), wanted, wanted) == [lost]


def test_namespaces_definitions_and_secrets_are_never_left_over() -> None:
    some = [
        Reference("Namespace", "team-a"),
        Reference("CustomResourceDefinition", "workerpools.ate.dev"),
        Reference("Secret", "ate-database", "ate-system"),
    ]
    assert leftovers(Inventory(frozenset(some)), frozenset(), some) == []


def test_workers_go_before_what_they_need() -> None:
    old = references(rendered(config(pools=[{"name": "gone"}])))
    wanted = references(rendered(config(pools=[])))
    assert [which.kind for which in leftovers(Inventory(old), wanted, old)] == [
        "WorkerPool",
        "ServiceAccount",
    ]


def test_a_reference_is_read_back_from_its_text() -> None:
    for which in references(rendered(config())):
        assert Reference.parse(str(which)) == which


def test_what_a_controller_notes_on_an_object_is_no_change_of_it() -> None:
    asked: Object = {"metadata": {"name": "a", "generation": 1}, "spec": {"replicas": 2}}
    noted = {"deployment.kubernetes.io/revision": "1"}
    seen = {**asked, "metadata": {"name": "a", "generation": 2, "annotations": noted}}
    assert what_happened(asked, seen) == "unchanged"
    ours = {**asked, "metadata": {"name": "a", "annotations": {"ate.dev/made-by": "ate-setup"}}}
    assert what_happened(asked, ours) == "changed"
    assert what_happened(asked, {**asked, "spec": {"replicas": 3}}) == "changed"
    assert what_happened(None, asked) == "created"
