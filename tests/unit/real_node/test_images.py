"""Which of the check's images have runsc: those of GVISOR=yes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from atenet.local.demo.report import Report

from tests.real_node import inside
from tests.real_node.images import NAMES, has_runsc, reference
from tests.real_node.trees import ROOT


def test_those_that_a_builder_puts_it_into_with_gvisor() -> None:
    files = {name: ROOT / "deploy" / "images" / f"{name}.Containerfile" for name in NAMES}
    assert {name for name, file in files.items() if has_runsc(file)} == {"ateworker"}


def node(*, runsc: bool) -> Any:
    def image_has(image: str, file: str) -> bool:
        assert (image, file) == (reference("ateworker"), "usr/local/bin/runsc")
        return runsc

    return SimpleNamespace(node=SimpleNamespace(image_has=image_has))


def test_with_runsc_the_gvisor_class_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert inside._remembers(Report(), node(runsc=True), must=True)
    assert capsys.readouterr().out == ""


def test_without_it_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    assert not inside._remembers(report, node(runsc=False), must=False)
    assert "the gvisor class is not tried: ateworker has no runsc" in capsys.readouterr().out
    assert not report.failed


def test_and_is_a_failure_for_who_asked_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    with pytest.raises(inside._Stop):
        inside._remembers(report, node(runsc=False), must=True)
    assert report.failed
    assert "GVISOR=yes" in capsys.readouterr().out
