"""What is done before the namespaces, where there is a network, and what is said when it fails."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.real_node import __main__ as command
from tests.real_node import images


class Stage:
    """Everything that `main` would do, as the order in which it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        groups = SimpleNamespace(make=lambda: self.did.append("groups"), remove=list)
        for place, name, stand_in in (
            (images, "fetch", lambda: self.did.append("fetch")),
            (command, "_built", lambda: (Path("programs"), Path("kube-node"), Path("runsc"))),
            (command, "_fault", lambda _: None),
            (command, "NodeCgroups", lambda _: groups),
            (command, "_run", self._run),
            (command.shutil, "which", lambda name: name),
            (command.os, "geteuid", lambda: 0),
            (command.signal, "signal", lambda *_: None),
        ):
            monkeypatch.setattr(place, name, stand_in)

    def _run(self, *given: object) -> int:
        self.did.append("run")
        return 0


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(sys, "argv", ["real_node"])
    return Stage(monkeypatch)


def test_what_comes_over_a_network_is_there_before_the_namespaces_without_one(stage: Stage) -> None:
    assert command.main() == 0
    assert stage.did == ["fetch", "groups", "run"]


def test_for_given_images_nothing_is_fetched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["real_node", "--images", "archive.tar"])
    assert command.main() == 0
    assert stage.did == ["groups", "run"]


def test_what_cannot_be_fetched_is_said_and_nothing_is_begun(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise RuntimeError("`mmdebstrap` ended with 25; see above")

    monkeypatch.setattr(images, "fetch", refused)
    assert command.main() == 1
    assert stage.did == []
    assert capsys.readouterr().err == "error: `mmdebstrap` ended with 25; see above\n"


def test_the_debians_and_the_packages_are_what_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(images.trees, "debian", asked.append)
    monkeypatch.setattr(images.trees, "packages", lambda: asked.append("packages"))
    images.fetch()
    assert asked == [images.trees.PLAIN, images.trees.WORKER, "packages"]
