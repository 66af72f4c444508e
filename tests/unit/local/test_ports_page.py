"""docs/ports.md names every port, flag and default there is."""

import dataclasses
from pathlib import Path

import pytest
from atenet.flags import flag_name
from atenet.local.layout import Layout
from atenet.local.processes import Credentials, plan
from atenet.local.settings import DATAPLANES, PORTS, LocalSettings

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ports.md").read_text()


@pytest.mark.parametrize("name", [*PORTS, "tunnel_port", "worker_network", "address"])
def test_every_port_flag_is_documented_with_its_default(name: str) -> None:
    default = str(getattr(LocalSettings(), name))
    rows = [line for line in PAGE.splitlines() if f"`{flag_name(name)}`" in line]
    assert rows, f"{flag_name(name)} is not in docs/ports.md"
    assert any(default.removesuffix(".0/24") in row for row in rows)


def test_every_address_of_every_process_has_a_row() -> None:
    anything = Path("/x")
    names = (field.name for field in dataclasses.fields(Credentials))
    creds = Credentials(
        **{n: (anything, anything) if n.endswith("_ca") else anything for n in names}
    )
    specs = [
        spec
        for dataplane in DATAPLANES
        for spec in plan(Layout(anything), LocalSettings(dataplane=dataplane, workers=1), creds)
    ]
    for spec in specs:
        process = spec.name.replace("worker-1", "worker-N")
        for what, address in spec.addresses.items():
            row = f"| {process} | `{what}` | {address.replace('127.1.0.1', '127.1.0.N')} |"
            assert row in PAGE, row
