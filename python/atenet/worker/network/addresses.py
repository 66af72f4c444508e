"""The addresses of this machine, or of this worker's pod: what its actors may not dial."""

from __future__ import annotations

import json
from typing import Any

from atenet.worker.network import command

__all__ = ["own_addresses"]


def own_addresses() -> tuple[str, ...]:
    """Every IPv4 address of the process's network namespace but loopback's, sorted. Blocks."""
    found: list[dict[str, Any]] = json.loads(command.run(["ip", "-j", "-4", "address"], ""))
    listed = (entry.get("local", "") for link in found for entry in link.get("addr_info", ()))
    return tuple(sorted({address for address in listed if not address.startswith("127.")} - {""}))
