"""Credentials of actors: certificates for their tunnels and their own, and tokens in their name."""

from atenet.ateapi.mint.certificates import CertificateMint
from atenet.ateapi.mint.tokens import TokenMint
from atenet.ateapi.mint.vault import Vault

__all__ = ["CertificateMint", "TokenMint", "Vault"]
