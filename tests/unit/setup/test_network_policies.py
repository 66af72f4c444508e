"""Who may reach whom: everything that has to, and nothing else."""

from __future__ import annotations

import pytest
from atenet.setup.objects.names import WORKER, Component, selector

from tests.support.network_policies import End, Host, Network, Pod
from tests.unit.setup.rendered import FULL, OWN, config, rendered

SYSTEM = "ate-system"


def of(component: Component) -> Pod:
    return Pod(SYSTEM, selector(component))


ENDS: dict[str, End] = {
    "ateapi": of(Component.API),
    "controller": of(Component.CONTROLLER),
    "router": of(Component.ROUTER),
    "egress": of(Component.EGRESS),
    "credentials": of(Component.CREDENTIALS),
    "atelet": of(Component.ATELET),
    "worker": Pod("ate-workers", {**WORKER, "ate.dev/workerpool": "default"}),
    "worker-team": Pod("team-a", {**WORKER, "ate.dev/workerpool": "big"}),
    # Pods that dress up as ours where anybody may make pods.
    "fake-worker": Pod("web", dict(WORKER)),
    "fake-router": Pod("web", selector(Component.ROUTER)),
    "fake-ateapi": Pod("web", selector(Component.API)),
    "fake-egress": Pod("web", selector(Component.EGRESS)),
    "fake-credentials": Pod("web", selector(Component.CREDENTIALS)),
    "fake-router-among-workers": Pod("ate-workers", selector(Component.ROUTER)),
    "stray": Pod(SYSTEM, {"app": "stray"}),
    "stray-among-workers": Pod("ate-workers", {"app": "stray"}),
    "frontend": Pod("web", {"app": "frontend"}),
    "prometheus": Pod("monitoring", {"app": "prometheus"}),
    "dns": Pod("kube-system", {"k8s-app": "kube-dns"}),
    "provider": Pod("secrets", {"app": "provider"}),
    "internet": Host("93.184.216.34"),
    "internet6": Host("2606:2800:220:1::1"),
    "metadata-service": Host("169.254.169.254"),
    "neighbour": Host("10.3.0.7"),
    "opened-neighbour": Host("10.9.0.7"),
    "api-server": Host("10.96.0.1"),
}

# who -> whom:port. A port is the pod's, as policies are held against it.
ALWAYS = {
    ("router", "ateapi", 7443),
    ("egress", "ateapi", 7443),
    ("atelet", "ateapi", 7443),
    ("controller", "ateapi", 7443),
    ("ateapi", "atelet", 7444),
    ("router", "worker", 8443),
    ("worker", "egress", 8443),
    ("ateapi", "egress", 7448),
    ("ateapi", "worker", 7448),
    ("frontend", "router", 8443),
    ("frontend", "router", 8444),
    ("internet", "router", 8443),
    ("egress", "internet", 443),
    ("egress", "internet", 80),
    ("egress", "internet", 8080),
    ("egress", "internet6", 443),
    ("ateapi", "internet", 443),
    ("atelet", "internet", 443),
    ("ateapi", "neighbour", 5432),
    ("controller", "api-server", 443),
    ("controller", "api-server", 6443),
    # A client is whoever has a certificate on the list; where it runs does not count.
    ("fake-worker", "router", 8443),
    ("fake-router", "router", 8443),
    ("fake-ateapi", "router", 8443),
    ("fake-egress", "router", 8443),
    ("prometheus", "router", 8443),
    ("provider", "router", 8443),
    ("dns", "router", 8443),
    *((who, "dns", 53) for who in ("ateapi", "controller", "router", "egress", "atelet", "worker")),
}
PLAIN = {("frontend", "router", 8080), ("frontend", "router", 8081), ("internet", "router", 8080)}
PORTS = (
    53,
    80,
    443,
    5432,
    6443,
    7443,
    7444,
    7445,
    7446,
    7447,
    7448,
    7450,
    7455,
    7457,
    8080,
    8081,
    8443,
    8444,
    9090,
    9092,
    15020,
    15021,
)
NAMESPACES = {"kube_system": {}, "web": {}, "monitoring": {}, "secrets": {}}


def network(dataplane: str, **more: object) -> Network:
    return Network.of(rendered(config(dataplane, **more)), **NAMESPACES)


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
def test_what_has_to_be_reached_is(dataplane: str) -> None:
    wanted = ALWAYS | (PLAIN if dataplane == "agentgateway" else set())
    here = network(dataplane)
    closed = {way for way in wanted if not here.allows(ENDS[way[0]], ENDS[way[1]], way[2])}
    assert not closed


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
@pytest.mark.parametrize(
    "whom", ["ateapi", "controller", "egress", "atelet", "worker", "stray", "stray-among-workers"]
)
def test_nobody_else_reaches_a_component_or_a_worker(dataplane: str, whom: str) -> None:
    here = network(dataplane)
    open_ways = {
        (who, whom, port)
        for who, end in ENDS.items()
        if who != whom
        for port in PORTS
        if here.allows(end, ENDS[whom], port)
    }
    assert open_ways == {way for way in ALWAYS if way[1] == whom}


@pytest.mark.parametrize("dataplane", ["envoy", "agentgateway"])
def test_clients_reach_the_ports_of_the_router_for_clients_alone(dataplane: str) -> None:
    here = network(dataplane)
    served = {8443, 8444} | ({8080, 8081} if dataplane == "agentgateway" else set())
    for who in ("frontend", "prometheus", "internet", "fake-worker"):
        reached = {port for port in PORTS if here.allows(ENDS[who], ENDS["router"], port)}
        assert reached == served, who


@pytest.mark.parametrize("who", ["worker", "worker-team"])
def test_a_worker_reaches_the_gateway_and_names_and_nothing_else(who: str) -> None:
    here = network("envoy", **FULL)
    reached = {
        (whom, port)
        for whom, end in ENDS.items()
        if whom != who
        for port in PORTS
        if here.allows(ENDS[who], end, port)
    }
    assert reached == {("egress", 8443), ("dns", 53)}


@pytest.mark.parametrize("place", ["metadata-service", "neighbour", "api-server", "frontend"])
def test_the_gateway_is_not_carried_to_what_is_not_public(place: str) -> None:
    """It refuses by itself, too: this is the second wall."""
    here = network("envoy")
    assert not any(here.allows(ENDS["egress"], ENDS[place], port) for port in PORTS)


def test_what_the_gateway_is_opened_to_it_reaches() -> None:
    here = network("envoy", **FULL)
    assert here.allows(ENDS["egress"], ENDS["opened-neighbour"], 8080)
    assert not here.allows(ENDS["egress"], ENDS["neighbour"], 8080)
    assert here.allows(ENDS["egress"], ENDS["provider"], 7447)
    assert not here.allows(ENDS["egress"], ENDS["provider"], 443)
    assert here.allows(ENDS["egress"], Host("10.96.0.10"), 53, "UDP")
    assert here.allows(ENDS["egress"], Host("fd00::10"), 5353, "UDP")


@pytest.mark.parametrize(
    ("whom", "port"),
    [
        ("ateapi", 7445),
        ("router", 9090),
        ("egress", 9090),
        ("egress", 9092),
        ("controller", 7455),
        ("worker", 7457),
    ],
)
def test_metrics_are_for_the_namespaces_that_are_named(whom: str, port: int) -> None:
    here, closed = network("envoy", **FULL), network("envoy")
    assert here.allows(ENDS["prometheus"], ENDS[whom], port)
    assert not here.allows(ENDS["frontend"], ENDS[whom], port)
    assert not closed.allows(ENDS["prometheus"], ENDS[whom], port)


def test_people_and_verifiers_come_from_everywhere_where_they_are_served() -> None:
    here, closed = network("envoy", **FULL), network("envoy")
    for port in (7446, 7450):
        assert here.allows(ENDS["frontend"], ENDS["ateapi"], port)
        assert not closed.allows(ENDS["frontend"], ENDS["ateapi"], port)


def test_secrets_are_asked_for_by_the_gateway_alone_and_read_from_the_api_server_alone() -> None:
    here = network("envoy", **OWN)
    asking = {
        (who, port)
        for who, end in ENDS.items()
        if who != "credentials"
        for port in PORTS
        if here.allows(end, ENDS["credentials"], port)
    }
    assert asking == {("egress", 7447)}
    reached = {
        (whom, port)
        for whom, end in ENDS.items()
        if isinstance(end, Pod) and whom != "credentials"
        for port in set(PORTS) - {443, 6443}  # those of API servers, wherever they are
        if here.allows(ENDS["credentials"], end, port)
    }
    assert reached == {("dns", 53)}
    assert here.allows(ENDS["credentials"], ENDS["api-server"], 443)
    assert here.allows(ENDS["credentials"], ENDS["api-server"], 6443)
    assert not here.allows(ENDS["credentials"], ENDS["api-server"], 80)
    assert not here.allows(ENDS["egress"], ENDS["provider"], 7447)


def test_where_certificates_are_secrets_the_agent_may_ask_the_api_server() -> None:
    given = config()
    here = Network.of(rendered(given, pod_certificates=False), **NAMESPACES)
    closed = Network.of(rendered(given), **NAMESPACES)
    assert here.allows(ENDS["atelet"], ENDS["api-server"], 6443)
    assert not closed.allows(ENDS["atelet"], ENDS["api-server"], 6443)


def test_workers_in_a_namespace_without_the_label_are_let_in_nowhere() -> None:
    """B151: what looks like an installation in another namespace is not taken for this one."""
    here = network("envoy")  # does not name team-a
    assert not here.allows(ENDS["worker-team"], ENDS["egress"], 8443)
    assert not here.allows(ENDS["router"], ENDS["worker-team"], 8443)
    assert network("envoy", **FULL).allows(ENDS["worker-team"], ENDS["egress"], 8443)
