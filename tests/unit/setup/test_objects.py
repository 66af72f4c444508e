"""What holds for the objects of every installation, on both dataplanes, with and without pod certificates."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from atenet.errors import AteError
from atenet.identity import spiffe

from tests.unit.setup.rendered import (
    FULL,
    OWN,
    Object,
    config,
    containers,
    named,
    of_kind,
    pod_specs,
    rendered,
)

# Root, and why: docs/kubernetes/security.md.
ON_NODES = {"atelet/atelet", "atelet/identity"}
SERVICES = {
    "envoy": {"https": (443, 8443), "connect-tls": (8444, 8444)},
    "agentgateway": {
        "https": (443, 8443),
        "connect-tls": (8444, 8444),
        "http": (80, 8080),
        "connect": (8081, 8081),
    },
}


@pytest.fixture(params=["envoy", "agentgateway"])
def dataplane(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[True, False], ids=["certificates", "secrets"])
def pod_certificates(request: pytest.FixtureRequest) -> bool:
    given: bool = request.param
    return given


@pytest.fixture(params=[{}, FULL, OWN], ids=["least", "full", "own"])
def given(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture
def objects(given: dict[str, Any], dataplane: str, pod_certificates: bool) -> list[Object]:
    return rendered(config(dataplane, **given), pod_certificates=pod_certificates)


@pytest.fixture
def credentials(given: dict[str, Any]) -> set[str]:
    """`ate-credentials` where it is installed."""
    return {"ate-credentials"} if "credentialAllow" in given else set()


def test_no_two_objects_are_the_same(objects: list[Object]) -> None:
    seen = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
        for each in objects
    ]
    assert len(seen) == len(set(seen))


def test_every_object_carries_the_labels_by_which_it_is_found_again(objects: list[Object]) -> None:
    for each in objects:
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == "atenet", each["metadata"]
        assert labels["app.kubernetes.io/managed-by"] == "ate-setup"


def test_the_same_configuration_makes_the_same_objects(dataplane: str) -> None:
    assert rendered(config(dataplane, **FULL)) == rendered(config(dataplane, **FULL))


def test_containers_are_confined_but_for_those_that_keep_nodes_files(objects: list[Object]) -> None:
    for name, container in containers(objects):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True, name
        assert security["allowPrivilegeEscalation"] is False, name
        assert security["capabilities"]["drop"] == ["ALL"], name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        if name not in ON_NODES:
            assert security["runAsNonRoot"] is True, name
            assert security["runAsUser"] > 0, name
            assert "add" not in security["capabilities"], name


def test_only_who_asks_the_api_server_has_a_token(
    objects: list[Object], pod_certificates: bool, credentials: set[str]
) -> None:
    with_token = {
        name
        for name, container in containers(objects)
        if any("serviceaccount" in mount["mountPath"] for mount in container["volumeMounts"])
    }
    asking = {"ate-controller/ate-controller", *(f"{each}/credentials" for each in credentials)}
    assert with_token == asking | (set() if pod_certificates else {"atelet/identity"})
    assert all(spec["automountServiceAccountToken"] is False for _, spec in pod_specs(objects))
    for each in of_kind(objects, "ServiceAccount"):
        assert each["automountServiceAccountToken"] is False


def test_each_authoritys_key_is_mounted_by_its_one_user(
    objects: list[Object], dataplane: str
) -> None:
    mounted = {
        (mount["name"], name)
        for name, container in containers(objects)
        for mount in container["volumeMounts"]
        if mount["name"].startswith("authority-")
    }
    minter = "sdsmint" if dataplane == "envoy" else "agentgateway"
    assert mounted == {
        ("authority-actor-identity", "ateapi/ateapi"),
        ("authority-interception", f"atenet-egress/{minter}"),
    }


def test_who_holds_the_interception_key_is_gone_after_envoy_and_there_before(
    objects: list[Object], dataplane: str
) -> None:
    if dataplane == "agentgateway":
        assert "sdsmint" not in json.dumps(objects)
        return
    spec = dict(pod_specs(objects))["atenet-egress"]
    first = spec["initContainers"][0]
    assert (first["name"], first["restartPolicy"]) == ("sdsmint", "Always")
    assert "startupProbe" in first


def test_secrets_are_named_and_never_said(objects: list[Object]) -> None:
    for name, container in containers(objects):
        for variable in container.get("env", []):
            secret = any(word in variable["name"] for word in ("SECRET", "KEY", "TOKEN"))
            assert secret == ("secretKeyRef" in variable.get("valueFrom", {})), (name, variable)
        assert "postgresql://" not in json.dumps(container), name
    assert not of_kind(objects, "Secret")
    for each in of_kind(objects, "ConfigMap"):
        assert "PRIVATE KEY" not in json.dumps(each)


def test_what_is_mounted_is_a_volume_and_what_is_a_volume_is_mounted(
    objects: list[Object],
) -> None:
    for name, spec in pod_specs(objects):
        every = [*spec.get("initContainers", []), *spec["containers"]]
        mounted = {mount["name"] for each in every for mount in each["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}, name
        for each in every:
            paths = [mount["mountPath"] for mount in each["volumeMounts"]]
            assert len(paths) == len(set(paths)), (name, each["name"])


def test_every_file_in_a_flag_is_below_a_mount(objects: list[Object]) -> None:
    system = ("/etc/ssl/",)
    for name, container in containers(objects):
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for word in container["args"]:
            value = (word.partition("=")[2] or word).lstrip("@")
            if value.startswith("/") and not value.startswith(system):
                assert any(value == m or value.startswith(f"{m}/") for m in mounts), (name, word)


def test_files_in_agentgateways_configuration_are_below_a_mount(
    objects: list[Object], dataplane: str
) -> None:
    files = of_kind(objects, "ConfigMap")
    assert bool(files) == (dataplane == "agentgateway")
    specs = dict(pod_specs(objects))
    for each in files:
        (container,) = specs[each["metadata"]["name"]]["containers"]
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for path in paths_in(yaml.safe_load(each["data"]["agentgateway.yaml"])):
            assert path == "/" or any(path.startswith(f"{m}/") for m in mounts), path


def paths_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [path for each in value.values() for path in paths_in(each)]
    if isinstance(value, list):
        return [path for each in value for path in paths_in(each)]
    text = isinstance(value, str) and value.startswith("/") and value != "/workers"
    return [value] if text else []


def test_services_have_exactly_the_ports_of_the_dataplane(
    objects: list[Object], dataplane: str
) -> None:
    assert ports_of(named(objects, "Service", "atenet-router")) == SERVICES[dataplane]
    assert ports_of(named(objects, "Service", "atenet-egress")) == {"tunnels": (443, 8443)}
    api = ports_of(named(objects, "Service", "api"))
    assert api["grpc"] == (443, 7443)
    assert set(api) <= {"grpc", "issuer", "tokens"}


def ports_of(service: Object) -> dict[str, tuple[int, int]]:
    return {each["name"]: (each["port"], each["targetPort"]) for each in service["spec"]["ports"]}


def test_services_reach_ports_that_containers_have(objects: list[Object]) -> None:
    for service in of_kind(objects, "Service"):
        selector = service["spec"]["selector"]
        (workload,) = (
            each
            for each in of_kind(objects, "Deployment")
            if selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()
        )
        there = {
            port["containerPort"]
            for container in workload["spec"]["template"]["spec"]["containers"]
            for port in container["ports"]
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= there


def test_names_in_certificates_are_those_of_services(
    objects: list[Object], credentials: set[str]
) -> None:
    names = {
        f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc"
        for each in of_kind(objects, "Service")
        if each["spec"].get("clusterIP") != "None"  # asked for addresses alone
    }
    assert names == {
        spiffe.API_SERVER_NAME,
        spiffe.ROUTER_SERVER_NAME,
        spiffe.EGRESS_SERVER_NAME,
        *(spiffe.CREDENTIALS_SERVER_NAME for _ in credentials),
    }


def test_accounts_are_those_of_the_contract(objects: list[Object], credentials: set[str]) -> None:
    ids = {
        spiffe.pod_id("ate-system", spec["serviceAccountName"]) for _, spec in pod_specs(objects)
    }
    assert ids == {
        spiffe.API_ID,
        spiffe.CONTROLLER_ID,
        spiffe.ROUTER_ID,
        spiffe.EGRESS_ID,
        spiffe.ATELET_ID,
        *(spiffe.CREDENTIALS_ID for _ in credentials),
    }
    there = {
        each["metadata"]["name"]
        for each in of_kind(objects, "ServiceAccount")
        if each["metadata"]["namespace"] == "ate-system"
    }
    assert {spiffe.parse_pod_id(each)[1] for each in ids} == there


def test_every_deployment_spreads_and_lets_one_pod_at_a_time_be_evicted(
    objects: list[Object],
) -> None:
    budgets = {each["metadata"]["name"]: each for each in of_kind(objects, "PodDisruptionBudget")}
    for each in of_kind(objects, "Deployment"):
        template = each["spec"]["template"]
        selector = each["spec"]["selector"]["matchLabels"]
        assert selector.items() <= template["metadata"]["labels"].items()
        budget = budgets.pop(each["metadata"]["name"])
        assert budget["spec"]["selector"]["matchLabels"] == selector
        spread = template["spec"]["topologySpreadConstraints"]
        assert {one["topologyKey"] for one in spread} == {
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        }
        assert each["spec"]["replicas"] == 2
        assert each["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert not budgets


def test_every_container_that_stays_is_probed_and_asks_for_resources(
    objects: list[Object],
) -> None:
    for name, spec in pod_specs(objects):
        for container in spec["containers"]:
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"]
            if container["name"] != "identity":
                assert "readinessProbe" in container, (name, container["name"])
            ports = {port["containerPort"] for port in container.get("ports", [])}
            for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
                given = container.get(probe)
                if given is not None:
                    how = given.get("httpGet") or given["tcpSocket"]
                    assert how["port"] in ports, (name, container["name"], probe)


def test_a_pod_has_longer_to_end_than_its_drain_takes(objects: list[Object]) -> None:
    for name, spec in pod_specs(objects):
        assert spec["terminationGracePeriodSeconds"] >= 30, name
    assert dict(pod_specs(objects))["atenet-router"]["terminationGracePeriodSeconds"] > 13 + 20


def test_a_changed_file_of_agentgateway_is_a_new_pod() -> None:
    def pod_annotations(**more: Any) -> Any:
        made = rendered(config("agentgateway", **more))
        return named(made, "Deployment", "atenet-router")["spec"]["template"]["metadata"]

    assert pod_annotations() == pod_annotations()
    assert pod_annotations() != pod_annotations(parkedRequestMax=7)


def test_where_there_are_pod_certificates_no_secret_holds_one(
    objects: list[Object], pod_certificates: bool, credentials: set[str]
) -> None:
    text = json.dumps(objects)
    assert ("podCertificate" in text) is pod_certificates
    mounted = {
        volume["secret"]["secretName"]
        for _, spec in pod_specs(objects)
        for volume in spec["volumes"]
        if "secret" in volume
    }
    issued = {name for name in mounted if name.startswith(("ate-identity-", "ate-serving-"))}
    assert issued == (
        set()
        if pod_certificates
        else {
            "ate-identity-ate-api-server",
            "ate-identity-atenet-router",
            "ate-identity-atenet-egress",
            "ate-serving-api",
            "ate-serving-atenet-router",
            "ate-serving-atenet-egress",
            *(f"ate-serving-{each}" for each in credentials),
        }
    )


def test_envoy_is_refused_without_a_list_of_clients_and_says_so() -> None:
    with pytest.raises(AteError, match="--ingress-allowed-spiffe-ids names nobody") as caught:
        rendered(config(ingressAllowedSpiffeIds=[]))
    assert "agentgateway" in (caught.value.hint or "")
    assert rendered(config("agentgateway", ingressAllowedSpiffeIds=[]))


def test_a_place_for_sleeping_actors_is_asked_for() -> None:
    with pytest.raises(AteError, match="--snapshots is missing"):
        rendered(config(snapshots=""))


def test_worker_pods_are_those_that_policies_and_directories_are_for() -> None:
    from atenet.controller import worker_pod
    from atenet.setup.objects import atelet, names

    assert worker_pod.SELECTOR == names.WORKER
    assert names.WORKER_PORT == worker_pod.ATUNNEL_PORT
    assert names.WORKER_STATS == worker_pod.STATS_PORT
    assert names.WORKER_DENIALS == worker_pod.DENIALS_PORT
    assert (atelet.NODE_STATE, atelet.NODE_RUN) == (worker_pod.NODE_STATE, worker_pod.NODE_RUN)


def test_pools_that_share_an_account_have_one() -> None:
    pools = [
        {"name": "small", "serviceAccountName": "shared"},
        {"name": "big", "serviceAccountName": "shared"},
        {"name": "own"},
    ]
    made = rendered(config(pools=pools))
    names = [
        each["metadata"]["name"]
        for each in of_kind(made, "ServiceAccount")
        if each["metadata"]["namespace"] == "ate-workers"
    ]
    assert names == ["shared", "own"]


def test_agentgateways_own_deadline_comes_before_kubelets() -> None:
    for given in (config("agentgateway"), config("agentgateway", parkedRequestBudget="60s")):
        made = rendered(given)
        for name in ("atenet-router", "atenet-egress"):
            file = yaml.safe_load(named(made, "ConfigMap", name)["data"]["agentgateway.yaml"])
            deadline = file["config"]["connectionTerminationDeadline"].removesuffix("ms")
            spec = named(made, "Deployment", name)["spec"]["template"]["spec"]
            assert int(deadline) / 1000 < spec["terminationGracePeriodSeconds"]
