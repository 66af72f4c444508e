"""The fingerprint of the host's programs changes when they do, and only then."""

from pathlib import Path

import pytest
from atenet.worker.sandbox.gvisor.host import HostFiles

STATUS = """Package: libc6
Status: install ok installed
Installed-Size: 12988
Architecture: amd64
Version: 2.36-9
Description: GNU C Library

Package: python3
Status: install ok installed
Architecture: amd64
Version: 3.11.2-1
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for directory in ("var/lib/dpkg", "etc", "usr/bin", "usr/local/bin"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STATUS)
    (tmp_path / "etc/os-release").write_text("ID=debian\nVERSION_ID=12\n")
    (tmp_path / "usr/local/bin/tool").write_text("1")
    return tmp_path


def _status(host: Path, old: str, new: str) -> None:
    path = host / "var/lib/dpkg/status"
    path.write_text(path.read_text().replace(old, new))


def test_it_does_not_depend_on_order_times_or_what_nobody_runs(host: Path) -> None:
    files = HostFiles(host)
    before = files.fingerprint()
    one, two = STATUS.split("\n\n")
    (host / "var/lib/dpkg/status").write_text(f"{two.strip()}\n\n{one}\n")
    _status(host, "GNU C Library", "The GNU C library")
    (host / "usr/bin/written").touch()
    assert files.fingerprint() == before
    assert HostFiles(host).fingerprint() == before


def _upgraded(host: Path) -> None:
    _status(host, "3.11.2-1", "3.11.2-2")


def _installed(host: Path) -> None:
    _status(host, "Package: python3", "Package: new\nVersion: 1\n\nPackage: python3")


def _half_upgraded(host: Path) -> None:
    _status(host, "install ok installed", "install ok unpacked")


def _released(host: Path) -> None:
    (host / "etc/os-release").write_text("ID=debian\nVERSION_ID=13\n")


def _by_hand(host: Path) -> None:
    (host / "usr/local/bin/another").touch()


def _rebuilt(host: Path) -> None:
    (host / "usr/local/bin/tool").write_text("longer")


def _pip(host: Path) -> None:
    (host / "usr/local/lib/python3.11/dist-packages/x-1.dist-info").mkdir(parents=True)


@pytest.mark.parametrize(
    "change", [_upgraded, _installed, _half_upgraded, _released, _by_hand, _rebuilt, _pip]
)
def test_it_changes_with_what_is_installed(host: Path, change) -> None:  # type: ignore[no-untyped-def]
    files = HostFiles(host)
    before = files.fingerprint()
    change(host)
    assert files.fingerprint() != before


def test_without_a_package_table_times_have_to_do(host: Path) -> None:
    (host / "var/lib/dpkg/status").unlink()
    files = HostFiles(host)
    before = files.fingerprint()
    assert files.fingerprint() == before
    (host / "usr/bin/new").touch()
    assert files.fingerprint() != before


def test_of_this_machine_it_is_the_same_twice() -> None:
    assert HostFiles().fingerprint() == HostFiles().fingerprint()
