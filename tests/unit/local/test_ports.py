"""Ports: taken, free, and on a network of their own."""

import os
import socket
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.local.ports import beside_others, settle
from atenet.local.settings import PORTS, LocalSettings

from tests.support.addresses import bound_socket

FREE = dict.fromkeys(PORTS, 0)


def test_a_taken_port_is_named_by_its_flag_and_its_holder() -> None:
    with bound_socket(0) as held:
        address, port = held.getsockname()
        with pytest.raises(AteError) as caught:
            settle(LocalSettings(**{**FREE, "address": address, "https_port": port}))
    assert caught.value.message.startswith(f"--https-port: {address}:{port} is taken by ")
    assert f"(pid {os.getpid()})" in caught.value.message
    assert "another --https-port" in str(caught.value.hint)


def test_a_taken_worker_address_is_named_too() -> None:
    given = beside_others(LocalSettings(workers=3))
    taken = socket.create_server((given.worker_address(3), given.tunnel_port))
    with taken, pytest.raises(AteError, match=r"--worker-network: .*\.3:8443 is taken"):
        settle(given)


def test_a_taken_port_of_a_worker_beside_its_tunnel_is_named_too() -> None:
    given = beside_others(LocalSettings())
    taken = socket.create_server((given.worker_address(2), given.denials_port))
    with taken, pytest.raises(AteError, match=r"--worker-network: .*\.2:7448 is taken"):
        settle(given)


def test_zero_becomes_distinct_ports_below_the_ephemeral_range() -> None:
    settled = settle(LocalSettings(dataplane="agentgateway", **FREE))
    ports = [getattr(settled, name) for name in settled.ports]
    assert len(set(ports)) == len(settled.ports)
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert low > 21000, "this kernel's ephemeral range leaves no room; the next line would lie"
    assert all(0 < port < low for port in ports)


def test_a_port_given_by_number_is_kept() -> None:
    with bound_socket(0) as probe:
        address, port = probe.getsockname()
    settled = settle(LocalSettings(**{**FREE, "address": address, "api_port": port}))
    assert settled.api_port == port


def test_two_systems_beside_each_other_share_no_address() -> None:
    first, second = beside_others(LocalSettings()), beside_others(LocalSettings())
    assert first.address != second.address
    assert first.worker_network != second.worker_network
    with socket.create_server((first.address, first.https_port)):
        settle(second)
