"""The same system on either dataplane, and what only one of them serves."""

import subprocess

import pytest

from tests.support.local_system import Ate


@pytest.mark.conformance("I-35")
def test_the_native_dataplane_serves_in_the_clear_as_well(ate: Ate) -> None:
    assert ate.up("--dataplane", "agentgateway", "--workers", "1").code == 0
    try:
        ate.furnish("one")
        assert ate.count(add=True) == 1
        for flags in (["--plaintext"], ["--port", "80"], ["--port", "80", "--plaintext"]):
            assert ate.good("curl", "demo/one", *flags).json["count"] == 1
        assert {"http", "connect"} <= set(ate.processes()["router"]["addresses"])
    finally:
        ate.good("down")
    # The other one finds the actor as it was left.
    assert ate.up("--workers", "1").code == 0
    try:
        assert ate.count() == 1
    finally:
        ate.good("down")
    assert ate.left_behind() == []


@pytest.mark.conformance("I-34")
def test_envoy_serves_those_who_show_a_certificate_and_nobody_in_the_clear(running: Ate) -> None:
    refused = running("curl", "demo/one", "--plaintext")
    assert (refused.code, refused.out) == (4, "")
    assert "router serves no http" in refused.err
    router = running.processes()["router"]["addresses"]
    assert "http" not in router
    host, _, port = router["https"].rpartition(":")
    home = running.layout.home
    base = ["curl", "-sS", "--max-time", "20", "-H", "ate-target-actor: demo/one"]
    base += ["--cacert", home / "trust" / "service-dns.pem"]
    base += ["--connect-to", f"atenet-router.ate-system.svc:443:{host}:{port}"]
    url = "https://atenet-router.ate-system.svc/"
    shown = ["--cert", home / "identity" / "cli" / "pod.pem"]
    known = subprocess.run([*base, *shown, url], capture_output=True, text=True, check=False)
    assert (known.returncode, "count" in known.stdout) == (0, True), known.stderr
    unknown = subprocess.run([*base, url], capture_output=True, text=True, check=False)
    assert (unknown.returncode != 0, unknown.stdout) == (True, "")


def test_the_addresses_that_the_router_picked_are_shown_and_serve(running: Ate) -> None:
    router = running.processes()["router"]["addresses"]
    for what, path in (("status", "/statusz"), ("readiness", "/readyz"), ("stats", "/metrics")):
        page = subprocess.run(
            ["curl", "-sSf", f"http://{router[what]}{path}"], capture_output=True, check=False
        )
        assert page.returncode == 0, page.stderr
