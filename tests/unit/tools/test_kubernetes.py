"""Kubernetes of the tests: what it is built from belongs together, and what is missing is said."""

import importlib
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tools.conftest import TOOLS


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("kubernetes")


def test_every_module_of_its_own_is_of_the_pinned_release(kubernetes: ModuleType) -> None:
    text = (TOOLS / "kubernetes" / "go.mod").read_text()
    release = kubernetes.SOURCE.pinned().replace("v1.", "v0.", 1)
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", text, re.MULTILINE)
    assert len(replaced) > 20
    assert all(old == new and version == release for old, new, version in replaced)


def test_without_go_it_says_what_to_install(
    kubernetes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kubernetes.golang, "find_go", lambda: None)
    with pytest.raises(kubernetes.golang.GoError, match=r"no Go .*\n?hint: install Go 1\."):
        kubernetes.ensure()


def test_what_was_built_is_used_again(
    kubernetes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = kubernetes.program()
    built.parent.mkdir(parents=True)
    built.touch(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert kubernetes.ensure() == built
    assert built.parent.name == kubernetes.SOURCE.pinned()


def test_a_nodes_programs_are_built_apart_from_the_control_planes(
    kubernetes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kubernetes.golang, "find_go", lambda: "go")
    monkeypatch.setattr(
        kubernetes.golang, "build", lambda go, module, package, target, *flags: (package, target)
    )
    assert kubernetes.ensure() == (".", kubernetes.program())
    assert kubernetes.ensure_node() == ("./node", kubernetes.node_program())
    assert (TOOLS / "kubernetes" / "node" / "main.go").exists()
