"""People by OpenID Connect tokens: whose they are, and which role their claims give."""

from atenet.ateapi.oidc.claims import RoleMap
from atenet.ateapi.oidc.keys import KeySet
from atenet.ateapi.oidc.verifier import Verifier, verifier_for

__all__ = ["KeySet", "RoleMap", "Verifier", "verifier_for"]
