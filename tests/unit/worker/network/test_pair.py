import json
import subprocess
from collections.abc import Iterator
from unittest import mock

import pytest
from atenet.errors import AteError
from atenet.worker.network import NetworkPair, command, netns
from atenet.worker.network.pair import build, demolish

# Prints, per attempt, what a dial from inside comes to and how long it took.
DIAL = """
import json, socket, sys, time
results = {}
for family, kind, host, port in json.loads(sys.argv[1]):
    connection = socket.socket(family, kind)
    connection.settimeout(5)
    began = time.monotonic()
    try:
        connection.connect((host, port))
        connection.send(b"x")
        connection.recv(1)
        outcome = "answered"
    except TimeoutError:
        outcome = "silence"
    except OSError as e:
        outcome = "refused"
    results[f"{host}:{port}"] = [outcome, time.monotonic() - began]
print(json.dumps(results))
"""
INET, INET6, TCP, UDP = 2, 10, 1, 2


def inside(namespace: str, *words: str) -> str:
    path = f"--net={netns.path_of(namespace)}"
    done = subprocess.run(["nsenter", path, *words], capture_output=True, text=True, check=True)
    return done.stdout


def dial(pair: NetworkPair, *attempts: tuple[int, int, str, int]) -> dict[str, list]:
    words = ["/usr/bin/python3", "-c", DIAL, json.dumps(attempts)]
    return json.loads(inside(pair.runtime, *words))


@pytest.fixture
def pair(prefix: str) -> Iterator[NetworkPair]:
    made = build(f"{prefix}1")
    yield made
    demolish(made)


def links(namespace: str) -> dict[str, dict]:
    return {link["ifname"]: link for link in json.loads(inside(namespace, "ip", "-j", "addr"))}


def test_the_two_ends_have_the_names_and_addresses_of_the_contract(pair: NetworkPair) -> None:
    gateway, runtime = links(pair.gateway), links(pair.runtime)
    assert sorted(gateway) == ["atside", "lo"]
    assert sorted(runtime) == ["eth0", "lo"]
    for found, address in ((gateway["atside"], "169.254.17.1"), (runtime["eth0"], "169.254.17.2")):
        assert [(a["local"], a["prefixlen"]) for a in found["addr_info"]] == [(address, 30)]
    for found in (gateway, runtime):
        assert "UP" in found["lo"]["flags"]


def test_the_actors_default_route_leads_to_the_gateway_which_has_none(pair: NetworkPair) -> None:
    routes = json.loads(inside(pair.runtime, "ip", "-j", "route"))
    assert [r["gateway"] for r in routes if r["dst"] == "default"] == ["169.254.17.1"]
    routes = json.loads(inside(pair.gateway, "ip", "-j", "route"))
    assert [r["dst"] for r in routes] == ["169.254.17.0/30"]


def test_nothing_is_added_to_the_hosts_own_namespace(prefix: str) -> None:
    def host_links() -> set[str]:
        listed = subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout
        return {link["ifname"] for link in json.loads(listed)}

    before = host_links()
    made = build(f"{prefix}2")
    assert host_links() == before
    demolish(made)


@pytest.mark.conformance("E-02")
def test_every_dial_is_refused_at_once(pair: NetworkPair) -> None:
    attempts = [
        (INET, TCP, "169.254.17.1", 80),
        (INET, TCP, "169.254.17.1", 15001),
        (INET, TCP, "169.254.169.254", 80),
        (INET, TCP, "127.0.0.1", 7443),
        (INET, TCP, "192.0.2.1", 443),
        (INET, UDP, "192.0.2.1", 53),
        (INET6, TCP, "2001:db8::1", 443),
        (INET6, UDP, "2001:db8::1", 53),
    ]
    for target, (outcome, seconds) in dial(pair, *attempts).items():
        assert outcome == "refused", target
        assert seconds < 2, target


def test_a_server_of_the_host_is_out_of_reach(pair: NetworkPair) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert dial(pair, (INET, TCP, "127.0.0.1", port))[f"127.0.0.1:{port}"][0] == "refused"


def test_no_address_of_the_sixth_family_exists(pair: NetworkPair) -> None:
    for namespace in (pair.gateway, pair.runtime):
        assert inside(namespace, "ip", "-6", "addr") == ""


def test_the_gateway_does_not_forward_even_when_the_host_does(pair: NetworkPair) -> None:
    for namespace in (pair.gateway, pair.runtime):
        assert inside(namespace, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "0"


def test_an_actor_without_capabilities_may_listen_on_port_80(pair: NetworkPair) -> None:
    found = inside(pair.runtime, "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start")
    assert found.strip() == "0"


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_step_that_fails_leaves_nothing(prefix: str, step: int) -> None:
    calls = []
    real = command.run

    def failing(words: list[str], text: str) -> None:
        calls.append(words)
        if len(calls) == step:
            raise AteError("as ordered")
        real(words, text)

    with mock.patch.object(command, "run", failing), pytest.raises(AteError, match="as ordered"):
        build(f"{prefix}3")
    assert len(calls) == step
    assert netns.names(prefix) == []


def test_demolishing_twice_is_fine(prefix: str) -> None:
    made = build(f"{prefix}4")
    demolish(made)
    demolish(made)


def tracked(namespace: str) -> int:
    return int(inside(namespace, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"))


def test_requests_to_the_actor_cost_no_tracking_and_captured_connections_do(
    pair: NetworkPair,
) -> None:
    import socket

    from atenet._engine import socket_in_netns

    def made(namespace: str) -> socket.socket:
        sock = socket.socket(fileno=socket_in_netns(str(netns.path_of(namespace))))
        sock.settimeout(5)
        return sock

    with made(pair.runtime) as actor, made(pair.gateway) as request:
        actor.bind(("169.254.17.2", 80))
        actor.listen()
        request.connect(("169.254.17.2", 80))
        accepted, _ = actor.accept()
        with accepted:
            request.sendall(b"question")
            assert accepted.recv(100) == b"question"
            accepted.sendall(b"answer")
            assert request.recv(100) == b"answer"
        assert tracked(pair.gateway) == 0
    with made(pair.gateway) as capture, made(pair.runtime) as dialling:
        capture.bind(("169.254.17.1", 15001))
        capture.listen()
        dialling.connect(("203.0.113.9", 443))
        accepted, _ = capture.accept()
        accepted.close()
        assert tracked(pair.gateway) == 1
