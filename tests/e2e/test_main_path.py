"""From `ate up` to an answer, and back to sleep."""

import json
import urllib.request
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.local_system import Ate

pytestmark = pytest.mark.timeout(180)


@pytest.mark.conformance("I-14")
def test_a_request_wakes_a_sleeping_actor_and_the_next_finds_it_awake(running: Ate) -> None:
    running("actor", "suspend", "demo/one")
    assert running.state() == "SUSPENDED"
    before = running.count(add=True)
    assert running.state() == "RUNNING"
    assert running.count() == before


@pytest.mark.conformance("I-13")
def test_an_actor_keeps_its_address_and_its_file_on_another_worker(running: Ate) -> None:
    count = running.count(add=True)
    first = running.worker()
    running.good("actor", "suspend", "demo/one")
    fillers = [f"demo/fill-{n}" for n in range(4)]
    for name in fillers:
        running("actor", "create", name, "-t", "counter")
    running("actor", "suspend", "demo/two")
    for name in fillers:
        running.good("actor", "resume", name)
    for name in fillers:
        if running.worker(name) != first:
            running.good("actor", "suspend", name)
    assert running.count() == count
    assert running.worker() not in ("", first)
    for name in fillers:
        running.good("actor", "delete", name, "--force")


def test_status_shows_processes_and_slots(running: Ate) -> None:
    running.count()
    found = running.good("status", "-o", "json").json
    assert {p["name"] for p in found["processes"]} == {
        "ateapi", "atelet", "credentials", "egress", "router", "sdsmint", "worker-1", "worker-2",
    }  # fmt: skip
    assert all(p["state"] == "ready" and p["restarts"] == 0 for p in found["processes"])
    hosts = {w["name"]: w for w in found["workers"]}
    assert sorted(hosts) == ["worker-1", "worker-2"]
    assert hosts[running.worker()]["used"] >= 1
    table = running.good("status").out
    assert "worker-1" in table
    assert found["home"] in table


async def test_both_gateways_see_that_the_control_plane_answers(running: Ate) -> None:
    for name in ("router", "egress"):
        page = f"http://{running.processes()[name]['addresses']['status']}/statusz?format=json"

        def healthy(page: str = page) -> bool:
            with urllib.request.urlopen(page, timeout=10) as answer:
                return bool(json.load(answer)["health"]["control-plane"]["healthy"])

        await eventually(healthy, 10)
    refused = [line for line in running.good("logs", "ateapi", "-n", "1000").out.splitlines()
               if "call refused" in line]  # fmt: skip
    assert refused == [], "nobody asks for what it may not have"


def test_curl_sends_what_it_is_told_and_shows_what_comes(running: Ate) -> None:
    ran = running("curl", "demo/one", "/", "-i", "-v", "-H", "x-test: 1")
    assert ran.out.startswith("HTTP/1.1 200 OK\n")
    assert json.loads(ran.out.split("\n\n")[1])["count"] >= 0
    assert "> ate-target-actor: demo/one" in ran.err
    assert "> x-test: 1" in ran.err
    assert "< HTTP/1.1 200 OK" in ran.err


@pytest.mark.conformance("I-06")
def test_curl_reaches_another_port_through_a_connect(running: Ate) -> None:
    assert "count" in running.good("curl", "demo/one", "--port", "80").json


def test_curl_fails_as_curl_does_when_asked_to(running: Ate) -> None:
    quiet = running("curl", "demo/nobody")
    assert quiet.code == 0
    assert running("curl", "demo/nobody", "--fail").code == 22


def test_logs_are_those_of_the_process_and_of_the_actor(running: Ate) -> None:
    running.count()
    assert "serving" in running.good("logs", "demo/one").out
    assert '"process": "ateapi"' in running.good("logs", "ateapi", "-n", "5").out
    unknown = running("logs", "nothing")
    assert unknown.code == 3
    assert "worker-1" in unknown.err


def test_json_is_for_programs_on_every_list(running: Ate) -> None:
    assert [a["metadata"]["name"] for a in running.good("atespace", "list", "-o", "json").json] == [
        "demo"
    ]
    (template,) = running.good("template", "list", "demo", "-o", "json").json
    assert template["containers"][0]["command"][0] == "/usr/bin/python3"
    names = {a["metadata"]["name"] for a in running.good("actor", "list", "-o", "json").json}
    assert {"one", "two"} <= names


def test_an_actor_can_be_made_and_unmade(running: Ate) -> None:
    running.good("actor", "create", "demo/brief", "-t", "counter")
    assert running.count("demo/brief", add=True) == 1
    refused = running("actor", "delete", "demo/brief")
    assert refused.code == 1
    running.good("actor", "delete", "demo/brief", "--force")
    assert running("actor", "get", "demo/brief").code == 3
    running.good("actor", "create", "demo/brief", "-t", "counter")
    assert running.count("demo/brief") == 0  # nothing of the first one
    running.good("actor", "delete", "demo/brief", "--force")


def test_an_egress_policy_is_set_asked_and_taken_away(running: Ate, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("rules:\n  - https: {hostnames: [api.example.com]}\n")
    denied = running.good("policy", "explain", "demo/one", "https://api.example.com/").out
    assert denied.startswith("denied: api.example.com port 443: the actor has no egress policy")
    said = running.good("policy", "set", "demo/one", "-f", str(file)).out
    assert said == "egress policy of demo/one set: 1 rule\n"
    allowed = running.good("policy", "explain", "demo/one", "https://api.example.com/").out
    assert allowed.startswith("allowed: api.example.com port 443: rules[0].https: intercepted")
    file.write_text("rules:\n  - http: {hostnames: [a.example, b.example]}\n")
    running.good("policy", "set", "demo/one", "-f", str(file))
    shown = running.good("policy", "get", "demo/one").out
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["0", "http", "a.example", "80", "-"],
        ["0", "http", "b.example", "80", "-"],
    ]
    assert running("policy", "set", "demo/nobody", "-f", str(file)).code == 3
    running.good("policy", "delete", "demo/one")
    assert running("policy", "get", "demo/one").code == 3


def test_the_audit_log_says_who_woke_the_actor(running: Ate) -> None:
    running.count()
    running.good("actor", "suspend", "demo/one")
    running.count()
    told = running.good("audit", "demo/one", "-o", "json").json
    assert {entry["target"] for entry in told} == {"actor/demo/one"}
    asked = ("Control/SuspendActor", "Control/ResumeActor")
    *_, slept, woken = [entry for entry in told if entry["method"] in asked]
    assert (slept["method"], slept["who"]) == ("Control/SuspendActor", "ate-system/ate-cli")
    assert (woken["method"], woken["who"]) == ("Control/ResumeActor", "ate-system/atenet-router")
    (last,) = running.good("audit", "-n", "1", "-o", "json").json
    assert last["number"] >= woken["number"]


# B132: within the time for which the router keeps an assignment.
@pytest.mark.conformance("C-07")
def test_an_actor_made_again_is_another_one_at_once(running: Ate) -> None:
    again = "demo/again"
    running.good("actor", "create", again, "-t", "counter")
    running.count(again, add=True)
    assert running.count(again, add=True) == 2
    running.good("actor", "delete", again, "--force")
    running.good("actor", "create", again, "-t", "counter")
    assert running.count(again) == 0
    running.good("actor", "delete", again, "--force")
