"""The pod of a pool: its worker's flags are ones that it takes, and a hash of all that matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from atenet.controller.cache import Key
from atenet.controller.pool import WorkerPoolSpec
from atenet.controller.quantity import quantity
from atenet.controller.worker_pod import PodSettings, template_hash, worker_pod
from atenet.flags import options_for
from atenet.worker.settings import WorkerSettings
from click.testing import CliRunner

POOL = Key("team", "pool")
SETTINGS = PodSettings(image="example.invalid/ateworker:1")


def pod(settings: PodSettings = SETTINGS, **spec: Any) -> dict[str, Any]:
    return worker_pod(POOL, "uid-1", WorkerPoolSpec.model_validate(spec), settings, "bcdfghjk")


def started_with(made: dict[str, Any]) -> WorkerSettings:
    """What the worker makes of its flags, with the pod's variables put in."""
    values = {"$(POD_NAME)": made["metadata"]["name"], "$(POD_UID)": "u-1", "$(POD_IP)": "10.0.0.7"}
    words = made["spec"]["containers"][0]["args"]
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    seen: list[WorkerSettings] = []

    @click.command()
    @options_for(WorkerSettings)
    def command(settings: WorkerSettings) -> None:
        seen.append(settings)

    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_the_worker_takes_its_flags_and_is_what_the_pool_says() -> None:
    limits = {"cpu": "1500m", "memory": "2Gi"}
    made = pod(slots=7, labels={"zone": "a"}, sandboxClass="gvisor", resources={"limits": limits})
    settings = started_with(made)
    assert (settings.name, settings.pool, settings.namespace) == ("pool-bcdfghjk", "pool", "team")
    assert (settings.slots, settings.sandbox, settings.labels) == (7, "gvisor", {"zone": "a"})
    assert settings.capacity == {"cpu_milli": 1500, "memory_bytes": 2 << 30}
    assert (settings.pod_uid, settings.ip) == ("u-1", ("10.0.0.7",))
    assert settings.spiffe_id == "spiffe://cluster.local/ns/team/sa/pool"
    assert made["spec"]["serviceAccountName"] == "pool"
    assert settings.cgroup_root == "own"  # or a pod's limits would not hold for its actors


def test_another_account_is_another_identity() -> None:
    made = pod(serviceAccountName="robot")
    assert made["spec"]["serviceAccountName"] == "robot"
    settings = started_with(made)
    assert settings.spiffe_id == "spiffe://cluster.local/ns/team/sa/robot"
    assert settings.pool == "pool"


def test_nothing_that_a_worker_mounts_is_left_to_its_node() -> None:
    # Below a volume it would keep kubelet from removing that, and the pod would never be gone.
    mounts = pod()["spec"]["containers"][0]["volumeMounts"]
    assert "Bidirectional" not in {each.get("mountPropagation") for each in mounts}


def test_no_two_workers_of_a_node_share_what_they_make_there() -> None:
    first = started_with(pod())
    other = worker_pod(POOL, "uid-1", WorkerPoolSpec(), SETTINGS, "kjhgfdcb")
    second = started_with(other)
    assert first.net_prefix != second.net_prefix
    assert first.socket != second.socket
    assert {first.socket.parent, second.socket.parent} == {Path("/run/ate/node")}


def test_every_mount_has_its_volume() -> None:
    for settings in (SETTINGS, PodSettings(image="i", pod_certificates=False)):
        made = pod(settings)["spec"]
        mounts = {mount["name"] for mount in made["containers"][0]["volumeMounts"]}
        assert mounts == {volume["name"] for volume in made["volumes"]}


def test_where_pods_get_no_certificates_the_secret_is_the_pod_s_own() -> None:
    made = pod(PodSettings(image="i", pod_certificates=False))
    (identity,) = [v for v in made["spec"]["volumes"] if v["name"] == "identity"]
    assert identity["secret"]["secretName"] == "ate-identity-pool-bcdfghjk"


def test_the_hash_follows_what_the_pod_is_made_of_and_nothing_else() -> None:
    def hashed(settings: PodSettings = SETTINGS, **spec: Any) -> str:
        return template_hash(POOL, WorkerPoolSpec.model_validate(spec), settings)

    assert hashed(replicas=1, drain={"deadlineSeconds": 9}) == hashed(replicas=5)
    assert hashed(strategy={"maxSurge": 2}) == hashed()
    different = [
        hashed(),
        hashed(slots=9),
        hashed(labels={"a": "b"}),
        hashed(nodeSelector={"disk": "ssd"}),
        hashed(tolerations=[{"operator": "Exists"}]),
        hashed(image="example.invalid/other:2"),
        hashed(PodSettings(image="example.invalid/ateworker:2")),
        hashed(resources={"limits": {"cpu": 1}}),
    ]
    assert len(set(different)) == len(different)
    assert pod()["metadata"]["labels"]["ate.dev/template-hash"] == hashed()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", "0.5"),
        (2, "2"),
        ("1Gi", str(1 << 30)),
        ("1k", "1000"),
        ("1e3", "1000"),
        (".5", "0.5"),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: str | int, value: str) -> None:
    assert quantity(text) == quantity(value)


@pytest.mark.parametrize("text", ["", "1 Gi", "1gi", "x", "1Gi2"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity(text)
