"""Identity in a cluster: requests signed or denied, Secrets where there are none, trust bundles, rotation."""

from __future__ import annotations

from atenet.controller.signing.authorities import ensure_authorities
from atenet.controller.signing.node_identity import keep_node_identity
from atenet.controller.signing.rotate import rotate
from atenet.controller.signing.run import run_signing
from atenet.controller.signing.settings import SigningSettings

__all__ = [
    "SigningSettings",
    "ensure_authorities",
    "keep_node_identity",
    "rotate",
    "run_signing",
]
