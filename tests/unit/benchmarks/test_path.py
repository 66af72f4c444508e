"""The bench of the ingress path: what generators say is read right, and both sides are set up alike."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from atenet.router.binary import find_envoy
from atenet.router.envoy_api import message_class
from atenet.router.resources.filters import carry_assignment
from atenet.router.resources.names import ASSIGNMENT

from benchmarks.path import cores
from benchmarks.path.compared import compared
from benchmarks.path.cores import busy_seconds
from benchmarks.path.envoy_dataplane import constant_answer
from benchmarks.path.envoys import configurations
from benchmarks.path.identity import BenchIdentity
from benchmarks.path.load import h2load_said, wrk_said
from benchmarks.path.share import share
from benchmarks.path.turns import in_turns

WRK = """Running 3s test @ https://127.0.0.1:1/
Requests/sec:  10.00

JSON {"requests": 30000, "us": 3000000, "bytes": 6000000, "failed": %d, "p": [1500, 8000, 20000]}
"""
H2LOAD = """finished in 3.00s, 13609.33 req/s, 373.62KB/s
requests: 40828 total, 40892 started, 40828 done, %d succeeded, %d failed, 0 errored, 0 timeout
status codes: %d 2xx, 0 3xx, 0 4xx, %d 5xx
traffic: 1.09MB (1145443) total, 119.71KB (122588) headers (space savings 96.90%%), 79.74KB (81656) data
"""

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_wrks_numbers_are_read() -> None:
    load = wrk_said(WRK % 0, 0.2)
    assert (load.rps, load.bytes_per_second, load.seconds) == (10_000, 2_000_000, 3.0)
    assert (load.p50, load.p99, load.p999) == (1.5, 8.0, 20.0)


def test_h2loads_numbers_are_read() -> None:
    load = h2load_said(H2LOAD % (40828, 0, 40828, 0), 0.2)
    assert (load.rps, load.seconds) == (13609.33, 3.0)
    assert round(load.bytes_per_second) == 381814


@pytest.mark.parametrize("text", [WRK % 1, "unable to connect"])
def test_a_failed_request_spoils_a_run_of_wrk(text: str) -> None:
    with pytest.raises(RuntimeError, match=r"failed|wrk said"):
        wrk_said(text, 0.2)


@pytest.mark.parametrize(
    "text", [H2LOAD % (1, 1, 2, 0), H2LOAD % (2, 0, 1, 1), "unable to connect"]
)
def test_a_failed_request_spoils_a_run_of_h2load(text: str) -> None:
    with pytest.raises(RuntimeError, match=r"failed|h2load said"):
        h2load_said(text, 0.2)


def test_rounds_begin_with_either_side() -> None:
    order: list[str] = []

    def side(name: str) -> dict[str, float]:
        order.append(name)
        return {"rps": float(len(order))}

    rounds = in_turns([lambda: side("a"), lambda: side("b")], runs=2)
    assert order == ["a", "b", "b", "a"]
    assert rounds == [[{"rps": 1.0}, {"rps": 2.0}], [{"rps": 4.0}, {"rps": 3.0}]]


def test_a_ratio_is_taken_within_a_round() -> None:
    outcome = compared([[{"x": 2.0}, {"x": 1.0}], [{"x": 30.0}, {"x": 10.0}]] * 2, "x", "peer")
    assert outcome.value == 2.5
    assert (outcome.ours, outcome.peer) == (16.0, 5.5)


def test_the_load_is_not_on_the_paths_cores_where_there_are_two() -> None:
    assert cores.PATH
    assert cores.LOAD
    assert len(cores.PATH | cores.LOAD) == 1 or not cores.PATH & cores.LOAD


def test_the_constant_answer_says_all_that_envoy_carries_on() -> None:
    wanted = re.findall(
        rf"%DYNAMIC_METADATA\({ASSIGNMENT}:(\w+)\)%", json.dumps(carry_assignment())
    )
    said = message_class("envoy.service.ext_proc.v3.ProcessingResponse").FromString(
        constant_answer("127.9.9.1")
    )
    assert said.HasField("request_headers")
    given = said.dynamic_metadata[ASSIGNMENT]
    assert {name for name in wanted if given[name]} == set(wanted) != set()


def test_envoy_takes_the_peers_configuration(tmp_path: Path) -> None:
    ports = {"https": 1, "http": 2, "tunnel": 3}
    for name, config in configurations(BenchIdentity(tmp_path), ports, "127.0.0.2").items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(config))
        command = [find_envoy(None), "--mode", "validate", "-c", file, "--log-level", "error"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_share_of_a_core_is_one_and_leaves_nothing_behind() -> None:
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with share([spin.pid], 0.1):
            grouped = Path(f"/proc/{spin.pid}/cgroup").read_text()
            before, began = _spent(spin.pid), time.monotonic()
            time.sleep(1)  # noqa: TID251 - what it may use in that time is the question
            used = (_spent(spin.pid) - before) / (time.monotonic() - began)
        assert f"/atenet-bench-{os.getpid()}" in grouped
        # A whole core would be ten times as much; the kernel counts in ticks.
        assert used < 0.5
        assert "atenet-bench" not in Path(f"/proc/{spin.pid}/cgroup").read_text()
    finally:
        spin.kill()
        spin.wait()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/atenet-bench-{os.getpid()}"))


def _spent(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def test_a_busy_core_counts_as_busy() -> None:
    core = min(cores.LOAD)
    before = busy_seconds([core])
    subprocess.run(["taskset", "-c", str(core), sys.executable, "-c", BURN], check=True)
    assert busy_seconds([core]) - before >= 0.3
