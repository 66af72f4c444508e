"""The pod that empties a node: what it mounts, and that it does what it says as a process."""

from __future__ import annotations

import os
from pathlib import Path

from atenet.setup.objects import atelet
from atenet.setup.objects.purge import purge

from tests.support.kube_pod import running
from tests.unit.setup.rendered import FULL, config


def test_it_sees_of_its_node_the_two_directories_of_agents_and_nothing_else() -> None:
    spec = purge(config(**FULL))["spec"]["template"]["spec"]
    paths = {each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
    assert paths == {atelet.NODE_STATE, atelet.NODE_RUN}
    assert not {"hostPID", "hostNetwork", "hostIPC", "serviceAccountName"} & set(spec)
    (container,) = spec["containers"]
    assert {each["mountPath"] for each in container["volumeMounts"]} == {*paths, "/tmp"}
    removed = {w.partition("=")[2] for w in container["args"] if w.startswith("--directory=")}
    assert removed == paths
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "FOWNER"]}


def test_it_goes_to_every_node_whatever_keeps_others_off() -> None:
    spec = purge(config(**FULL))["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


async def test_as_a_process_it_is_ready_when_the_directories_are_empty(
    tmp_path: Path, root: None
) -> None:
    spec = purge(config())["spec"]["template"]["spec"]
    volumes = {name: tmp_path / name for name in ("state", "node-run")}
    for each in volumes.values():
        each.mkdir()
        (each / "file").write_text("x")
        os.chown(each / "file", 40001, 40001)
    closed = volumes["state"] / "actors"
    closed.mkdir(mode=0o700)
    (closed / "inner").mkdir()
    os.chown(closed, 40001, 40001)
    async with running(spec, volumes, tmp_path / "pod") as pod:
        assert [list(each.iterdir()) for each in volumes.values()] == [[], []]
        assert await pod.terminate() == {"purge": 0}
