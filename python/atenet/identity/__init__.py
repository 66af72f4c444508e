"""Who is who: SPIFFE ids, certificate authorities, and the files that carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atenet.identity.authority import Authority, Usage
    from atenet.identity.local import AUTHORITIES, LocalIdentity

__all__ = ["AUTHORITIES", "Authority", "LocalIdentity", "Usage"]


def __getattr__(name: str) -> Any:
    """Issuing needs cryptography; a process that only names or shows identities does without."""
    from importlib import import_module

    homes = {"AUTHORITIES": "local", "LocalIdentity": "local"}
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{homes.get(name, 'authority')}"), name)
