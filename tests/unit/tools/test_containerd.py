"""containerd of `make node`: what is missing is said, what is there is used."""

import importlib
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tools.conftest import TOOLS


@pytest.fixture
def containerd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("containerd")


def test_without_go_it_says_what_to_install(
    containerd: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containerd.golang, "find_go", lambda: None)
    with pytest.raises(containerd.golang.GoError, match=r"no Go .*\n?hint: install Go 1\."):
        containerd.ensure()


def test_what_was_built_is_used_again(
    containerd: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    containerd.SOURCE.directory().mkdir(parents=True)
    for name in containerd.PROGRAMS:
        (containerd.SOURCE.directory() / name).touch(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert containerd.ensure().name == containerd.SOURCE.pinned()


def test_only_what_is_missing_is_built(
    containerd: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    containerd.SOURCE.directory().mkdir(parents=True)
    (containerd.SOURCE.directory() / "containerd").touch(0o755)
    built = []
    monkeypatch.setattr(containerd.golang, "find_go", lambda: "go")
    monkeypatch.setattr(
        containerd.golang,
        "build",
        lambda go, module, package, target, *flags: built.append(package),
    )
    containerd.ensure()
    assert [each.rpartition("/")[2] for each in built] == ["containerd-shim-runc-v2", "ctr"]
