"""Every flag in a container is one of the program's own, and its settings class takes the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from atenet import daemon
from atenet.cli.failure import run
from atenet.setup.objects.purge import purge
from click.testing import CliRunner

from tests.unit.setup.rendered import FULL, OWN, Object, config, containers, of_kind, rendered

# script -> module and object, as pyproject.toml has them.
SCRIPTS = {
    "atenet": ("atenet.cli.atenet", "atenet"),
    "ateapi": ("atenet.ateapi.main", "main"),
    "atelet": ("atenet.atelet.main", "main"),
    "ate-controller": ("atenet.controller.main", "main"),
}
# What kubelet puts in.
VARIABLES = {"NODE_NAME": "node-1.example", "POD_IP": "10.244.0.7"}


def cases() -> Iterator[Any]:
    for dataplane in ("envoy", "agentgateway"):
        for certificates in (True, False):
            for what, more in (("least", {}), ("full", FULL), ("own", OWN)):
                objects = rendered(config(dataplane, **more), pod_certificates=certificates)
                for name, container in containers(objects):
                    if container["command"] != ["envoy"]:
                        label = f"{dataplane}-{'certificates' if certificates else 'secrets'}-{what}-{name}"
                        yield pytest.param(container, objects, id=label)
    (purging,) = purge(config(**FULL))["spec"]["template"]["spec"]["containers"]
    yield pytest.param(purging, [], id="ate-purge/purge")


def words(container: Object) -> list[str]:
    given = [*container["command"], *container["args"]]
    return [re.sub(r"\$\((\w+)\)", lambda match: VARIABLES[match[1]], word) for word in given]


def program(script: str) -> click.Command:
    module, name = SCRIPTS[script]
    command = getattr(import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the daemons that would have been started."""
    names: list[str] = []

    def instead(name: str, log_level: str, work: Callable[..., Any]) -> None:
        assert log_level in ("debug", "info", "warning", "error")
        names.append(name)

    monkeypatch.setattr(daemon, "run", instead)
    return names


@pytest.mark.parametrize(("container", "objects"), list(cases()))
def test_a_container_starts_its_program_with_flags_that_it_takes(
    container: Object, objects: list[Object], started: list[str], tmp_path: Path
) -> None:
    script, *rest = with_files(words(container), objects, container, tmp_path)
    done = CliRunner().invoke(program(script), rest, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    if "bootstrap" in rest:
        assert (tmp_path / "envoy.json").read_text().startswith("{")
    else:
        assert len(started) == 1


def with_files(
    given: list[str], objects: list[Object], container: Object, directory: Path
) -> list[str]:
    """The same with files that are read or written before anything is started moved to `directory`."""
    moved = {"/run/atenet/envoy.json": str(directory / "envoy.json")}
    for mount in container["volumeMounts"]:
        if mount["mountPath"] == "/etc/ate":
            for each in of_kind(objects, "ConfigMap"):
                if each["metadata"]["name"] in given_names(container, objects):
                    (directory / "agentgateway.yaml").write_text(each["data"]["agentgateway.yaml"])
            moved["/etc/ate/agentgateway.yaml"] = str(directory / "agentgateway.yaml")
        if mount["mountPath"] == "/run/ate/store":
            (directory / "url").write_text("postgresql://ate:secret@db.example/ate")
            moved["/run/ate/store/url"] = str(directory / "url")
    for old, new in moved.items():
        given = [word.replace(old, new) for word in given]
    return given


def given_names(container: Object, objects: list[Object]) -> set[str]:
    """ConfigMaps that the pod of this container mounts."""
    names = set()
    for workload in of_kind(objects, "Deployment", "DaemonSet"):
        spec = workload["spec"]["template"]["spec"]
        if container in [*spec.get("initContainers", []), *spec["containers"]]:
            names = {each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each}
    return names


def test_a_flag_that_no_program_has_is_noticed() -> None:
    """What the tests above stand on."""
    done = CliRunner().invoke(program("atenet"), ["sdsmint", "--no-such-flag=1"])
    assert done.exit_code == 2
    assert run is not None


def test_the_hook_waits_longer_than_the_drain_and_shorter_than_the_grace() -> None:
    from atenet.flags import seconds

    for given in (config(), config(drainDelay="20s", parkedRequestBudget="30s")):
        for each in of_kind(rendered(given), "Deployment"):
            spec = each["spec"]["template"]["spec"]
            flags = dict(
                word.split("=", 1)
                for container in spec["containers"]
                for word in container["args"]
                if word.startswith("--drain-") and "=" in word
            )
            for container in spec["containers"]:
                hook = container.get("lifecycle", {}).get("preStop", {}).get("exec")
                if hook is None:
                    continue
                (timeout,) = (w.split("=")[1] for w in hook["command"] if w.startswith("--timeout"))
                drain = seconds(flags["--drain-delay"]) + seconds(flags["--drain-timeout"])
                assert drain < seconds(timeout) < spec["terminationGracePeriodSeconds"]
                file = [w for w in hook["command"] if w.startswith("--drain-complete-file")]
                assert file == [f"--drain-complete-file={flags['--drain-complete-file']}"]
