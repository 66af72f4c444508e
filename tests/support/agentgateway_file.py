"""Writes the native dataplane's configuration file from a spec."""

from pathlib import Path

from tests.support.pki import Pki
from tests.support.router_spec import RouterSpec

LISTENERS = ("http", "https", "http-connect", "https-connect")


def write_file(spec: RouterSpec, pki: Pki, directory: Path) -> Path:
    raise RuntimeError("waits for the file format")
