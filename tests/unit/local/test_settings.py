"""What a local system may be started with."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from atenet.errors import AteError
from atenet.local.settings import PORTS, LocalSettings


def test_the_defaults_are_what_the_documents_say() -> None:
    given = LocalSettings()
    assert (given.https_port, given.connect_tls_port) == (8443, 8444)
    assert (given.http_port, given.connect_port) == (8080, 8081)
    assert given.worker_address(1) == "127.1.0.1"
    assert given.worker_address(200) == "127.1.0.200"


@pytest.mark.parametrize(
    ("wrong", "flag"),
    [
        ({"workers": 0}, "--workers"),
        ({"workers": 201}, "--workers"),
        ({"slots": 0}, "--slots"),
        ({"https_port": 65536}, "--https-port"),
        ({"api_port": -1}, "--api-port"),
        ({"tunnel_port": 0}, "--tunnel-port"),
        ({"address": "0.0.0.0"}, "--address"),
        ({"address": "192.0.2.1"}, "--address"),
        ({"address": "localhost"}, "--address"),
        ({"worker_network": "10.0.0.0/24"}, "--worker-network"),
        ({"worker_network": "127.1.0.1/24"}, "--worker-network"),
        ({"worker_network": "127.1.0.0/30", "workers": 3}, "--worker-network"),
        ({"https_port": 9000, "connect_tls_port": 9000}, "--connect-tls-port"),
        ({"https_port": 9000, "http_port": 9000, "dataplane": "agentgateway"}, "--http-port"),
        ({"tunnel_port": 7448}, "--tunnel-port"),
        ({"address": "127.1.0.2"}, "--address"),
        ({"dataplane": "nginx"}, "--dataplane"),
        ({"log_level": "loud"}, "--log-level"),
        ({"allow_host_path": (Path("/does/not/exist"),)}, "--allow-host-path"),
        ({"allow_host_path": (Path(),)}, "--allow-host-path"),
        ({"park_budget": 0.0}, "--park-budget"),
        ({"egress_name_server": ("dns.example",)}, "--egress-name-server"),
        ({"egress_name_server": ("127.0.0.1:0x35",)}, "--egress-name-server"),
        ({"egress_allow_cidr": ("10.0.0.1/8",)}, "--egress-allow-cidr"),
        ({"egress_origin_roots": Path("/does/not/exist")}, "--egress-origin-roots"),
        ({"egress_origin_roots": Path("relative.pem")}, "--egress-origin-roots"),
        ({"egress_origin_roots": Path("/etc/passwd")}, "--egress-origin-roots"),
    ],
)
def test_what_cannot_be_is_named_by_its_flag_with_a_hint(wrong: dict[str, Any], flag: str) -> None:
    with pytest.raises(AteError) as caught:
        LocalSettings(**wrong)
    assert caught.value.message.startswith(f"{flag}:")
    assert caught.value.hint


def test_a_port_that_the_dataplane_does_not_serve_is_nobodys() -> None:
    given = LocalSettings(https_port=9000, http_port=9000)
    assert not {"http_port", "readiness_port", "egress_readiness_port"} & set(given.ports)
    assert set(LocalSettings(dataplane="agentgateway").ports) == set(PORTS)


def test_any_number_of_ports_may_be_free_ones() -> None:
    LocalSettings(**dict.fromkeys(PORTS, 0))


def test_settings_survive_the_way_to_the_supervisor(tmp_path: Path) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_text("-----BEGIN CERTIFICATE-----\n")
    given = LocalSettings(
        workers=3,
        allow_host_path=(tmp_path,),
        park_budget=0.25,
        egress_name_server=("127.0.0.53",),
        egress_allow_cidr=("127.9.0.0/16", "fd00::/8"),
        egress_origin_roots=roots,
    )
    assert LocalSettings.from_json(given.as_json()) == given


def test_workers_never_get_the_routers_address() -> None:
    given = LocalSettings()
    router = ipaddress.ip_address(given.address)
    assert router not in ipaddress.ip_network(given.worker_network)
