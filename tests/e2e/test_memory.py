"""Actors whose memory survives their sleep, through `ate` as a person uses it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.eventually import eventually
from tests.support.gvisor_box import runsc
from tests.support.local_system import TOP, Ate, ate_home

pytestmark = pytest.mark.timeout(300)
MEMORY = TOP / "examples" / "memory"


@pytest.fixture(scope="module")
def remembering(root: None) -> Iterator[Ate]:
    """Two workers with one slot each, of the gvisor class."""
    runsc()
    with ate_home() as ate:
        flags = ("--workers", "2", "--slots", "1", "--allow-host-path", str(MEMORY))
        up = ate.up("--sandbox", "gvisor", "--suspend-grace", "1s", *flags)
        assert up.code == 0, up
        assert "gvisor: actors keep their memory" in up.out
        ate.good("atespace", "create", "demo")
        ate.good("template", "create", "-f", MEMORY / "template.yaml")
        for name in ("one", "two", "three"):
            ate.good("actor", "create", f"demo/{name}", "-t", "memory")
        yield ate
        ate.good("down")
        assert ate.left_behind() == []


@pytest.fixture
def ate(remembering: Ate) -> Iterator[Ate]:
    """Nobody is awake before, nor after."""
    yield remembering
    for name in ("one", "two", "three"):
        if remembering.state(f"demo/{name}") in ("RUNNING", "PAUSED"):
            remembering.good("actor", "suspend", f"demo/{name}")


def _ask(ate: Ate, actor: str, *, add: bool = False) -> dict[str, Any]:
    method = ["-X", "POST", "-d", ""] if add else []
    found: dict[str, Any] = ate.good("curl", "--fail", actor, *method).json
    return found


@pytest.mark.conformance("I-13")
def test_memory_goes_on_after_a_move_to_another_worker(ate: Ate) -> None:
    before = [_ask(ate, "demo/one", add=True) for _ in range(3)][-1]
    first = ate.worker("demo/one")
    ate.good("actor", "suspend", "demo/one")
    # Someone else takes its place, so that it wakes elsewhere.
    while _ask(ate, "demo/two") and ate.worker("demo/two") != first:
        ate.good("actor", "suspend", "demo/two")
    after = _ask(ate, "demo/one", add=True)
    assert ate.worker("demo/one") != first
    assert after["count"] == before["count"] + 1
    assert after["started"] == before["started"]
    assert after["actor"] == "demo/one"


def test_a_pause_keeps_it_on_the_node_and_frees_its_slot(ate: Ate) -> None:
    before = _ask(ate, "demo/one", add=True)
    ate.good("actor", "pause", "demo/one")
    assert ate.state("demo/one") == "PAUSED"
    for other in ("demo/two", "demo/three"):
        _ask(ate, other)
        assert ate.state(other) == "RUNNING"
    ate.good("actor", "suspend", "demo/two")
    after = _ask(ate, "demo/one", add=True)
    assert (after["count"], after["started"]) == (before["count"] + 1, before["started"])
    ate.good("actor", "pause", "demo/one")
    ate.good("actor", "suspend", "demo/one")
    assert ate.state("demo/one") == "SUSPENDED"
    assert _ask(ate, "demo/one", add=True)["count"] == before["count"] + 2


def test_a_revert_goes_back_to_the_last_snapshot(ate: Ate) -> None:
    stored = _ask(ate, "demo/one", add=True)["count"]
    ate.good("actor", "suspend", "demo/one")
    assert _ask(ate, "demo/one", add=True)["count"] == stored + 1
    ate.good("actor", "revert", "demo/one")
    assert _ask(ate, "demo/one")["count"] == stored


def test_a_spoilt_snapshot_crashes_it_with_the_reason_and_a_revert_starts_it_anew(ate: Ate) -> None:
    ate.good("actor", "delete", "demo/three")
    ate.good("actor", "create", "demo/three", "-t", "memory")  # with no other snapshot
    _ask(ate, "demo/three", add=True)
    ate.good("actor", "suspend", "demo/three")
    found = ate.good("actor", "get", "demo/three", "-o", "json").json
    uid = found["metadata"]["uid"]
    (archive,) = (ate.layout.snapshots / "demo" / uid).glob("*/_memory.tar.zst")
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    assert ate("curl", "--fail", "demo/three").code != 0
    crashed = ate.good("actor", "get", "demo/three", "-o", "json").json["status"]
    assert crashed["state"] == "ACTOR_STATE_CRASHED"
    assert "checksum" in crashed["crash"]["message"]
    ate.good("actor", "revert", "demo/three")
    assert _ask(ate, "demo/three")["count"] == 0


def test_a_spoilt_snapshot_is_passed_over_for_the_one_before(ate: Ate) -> None:
    stored = _ask(ate, "demo/one", add=True)["count"]
    ate.good("actor", "suspend", "demo/one")
    assert _ask(ate, "demo/one", add=True)["count"] == stored + 1
    ate.good("actor", "suspend", "demo/one")
    status = ate.good("actor", "get", "demo/one", "-o", "json").json["status"]
    newest = Path(unquote(status["externalSnapshot"]["snapshotUri"].removeprefix("file://")))
    archive = newest / "_memory.tar.zst"
    archive.write_bytes(archive.read_bytes()[:-1])
    gone = ate.good("snapshot", "gc", "--older-than", "0s", "--dry-run", "-o", "json").json
    assert gone == [], "both are the actor's"
    assert ate("curl", "--fail", "demo/one").code != 0
    told = ate.good("actor", "revert", "demo/one")
    assert "it is back at the memory and files of the snapshot before it, taken 20" in told.err
    assert _ask(ate, "demo/one")["count"] == stored


def test_a_snapshot_without_its_manifest_crashes_it_and_a_revert_starts_it_anew(ate: Ate) -> None:
    _ask(ate, "demo/three", add=True)
    ate.good("actor", "suspend", "demo/three")
    uid = ate.good("actor", "get", "demo/three", "-o", "json").json["metadata"]["uid"]
    for manifest in (ate.layout.snapshots / "demo" / uid).glob("*/manifest.json"):
        manifest.unlink()
    assert ate("curl", "--fail", "demo/three").code != 0
    assert ate.state("demo/three") == "CRASHED"
    assert "it is back at its beginning" in ate.good("actor", "revert", "demo/three").err
    assert _ask(ate, "demo/three")["count"] == 0
    assert ate.state("demo/three") == "RUNNING"


async def test_a_killed_worker_costs_the_memory_and_leaves_nothing(ate: Ate) -> None:
    stored = _ask(ate, "demo/two", add=True)["count"]
    ate.good("actor", "suspend", "demo/two")
    assert _ask(ate, "demo/two", add=True)["count"] == stored + 1
    worker = ate.worker("demo/two")
    ate.kill(worker)
    await eventually(lambda: ate.state("demo/two") == "CRASHED", 60)
    crashed = ate.good("actor", "get", "demo/two", "-o", "json").json["status"]
    assert "its worker was lost, and its memory with it" in crashed["crash"]["message"]
    ate.good("actor", "revert", "demo/two")
    assert _ask(ate, "demo/two")["count"] == stored, "its last snapshot, memory and all"


def test_snapshots_are_listed_verified_and_collected(ate: Ate) -> None:
    _ask(ate, "demo/one", add=True)
    ate.good("actor", "suspend", "demo/one")
    listed = ate.good("snapshot", "list", "-o", "json").json
    assert ("demo/one", "referenced") in {(s["actor"], s["state"]) for s in listed}
    assert ("demo/one", "good") in {
        (s["actor"], s["state"]) for s in ate.good("snapshot", "verify", "-o", "json").json
    }
    found = next(s for s in listed if s["actor"] == "demo/one")
    kept = Path(unquote(found["uri"].removeprefix("file://")))
    orphan = kept.with_name("0" * 32)
    shutil.copytree(kept, orphan)
    assert ate.good("snapshot", "gc").out.splitlines()[-1].startswith("removed 0 snapshots")
    dry = ate.good("snapshot", "gc", "--older-than", "0s", "--dry-run", "-o", "json").json
    assert [s["uri"] for s in dry] == [f"file://{orphan}"]
    assert orphan.exists()
    ate.good("snapshot", "gc", "--older-than", "0s")
    assert not orphan.exists()
    archive = kept / "_memory.tar.zst"
    archive.write_bytes(archive.read_bytes()[:-1])
    assert ate("snapshot", "verify", "demo/one").code == 1
    ate.good("actor", "delete", "demo/one")
    ate.good("actor", "create", "demo/one", "-t", "memory")


def test_a_system_whose_every_process_is_killed_is_swept_with_its_sandboxes(root: None) -> None:
    runsc()
    with ate_home() as ate:
        up = ate.up("--sandbox", "gvisor", "--workers", "1", "--allow-host-path", str(MEMORY))
        assert up.code == 0, up
        ate.good("atespace", "create", "demo")
        ate.good("template", "create", "-f", MEMORY / "template.yaml")
        ate.good("actor", "create", "demo/one", "-t", "memory")
        _ask(ate, "demo/one", add=True)
        for process in ("supervisor", "worker-1", "atelet", "ateapi"):
            ate.kill(process)
        assert any("sandboxes" in left for left in ate.left_behind())
        ate.good("down")
        assert ate.left_behind() == []


def test_doctor_says_what_is_here(ate: Ate) -> None:
    told = {f["what"]: f for f in json.loads(ate.good("doctor", "-o", "json").out)}
    assert told["runsc"]["state"] == "ok"
    assert {"rights", "namespaces", "nftables", "cgroups", "envoy", "postgresql"} <= set(told)
