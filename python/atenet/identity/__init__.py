"""Who is who: SPIFFE ids, certificate authorities, and the files that carry them."""

from atenet.identity.authority import Authority, Usage
from atenet.identity.local import AUTHORITIES, LocalIdentity

__all__ = ["AUTHORITIES", "Authority", "LocalIdentity", "Usage"]
