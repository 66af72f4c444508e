"""How egress gateways serve what they lately denied: to the control plane, which knows people's roles. Pure."""

from __future__ import annotations

from atenet.identity import spiffe
from atenet.setup.objects import volumes
from atenet.setup.objects.names import Port

__all__ = ["denials_flags"]


def denials_flags() -> dict[str, object]:
    """Of either dataplane's process."""
    return {
        "--denials-listen": f"0.0.0.0:{Port.DENIALS}",
        "--denials-credential": volumes.SERVING_FILE,
        "--denials-trust": volumes.trust_file("pod-identity"),
        "--denials-reader": spiffe.API_ID,
    }
