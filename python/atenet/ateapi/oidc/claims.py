"""From a token's claims to roles. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from atenet.ateapi.roles import PEOPLE, Role
from atenet.errors import AteError

__all__ = ["RoleMap"]


class RoleMap:
    """`claim`: the claim with a person's groups or roles, by name or by a path of names joined by
    dots (`realm_access.roles`); `given`: `<value>=<role>`, each naming one of the people's roles.

    Raises AteError naming the flag.
    """

    def __init__(self, claim: str, given: Iterable[str]) -> None:
        self._claim = claim
        self._roles = dict(_parse(pair) for pair in given)
        if not claim or not self._roles:
            raise AteError(
                "tokens give nobody a role",
                hint="give --token-role <value of --token-role-claim>=<role> at least once",
            )

    def of(self, claims: Mapping[str, Any]) -> frozenset[Role]:
        """Values that are mapped to nothing count for nothing."""
        found = _look_up(claims, self._claim)
        values = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return frozenset(self._roles[v] for v in values if isinstance(v, str) and v in self._roles)


def _parse(pair: str) -> tuple[str, Role]:
    value, _, word = pair.rpartition("=")
    known = {role.value: role for role in PEOPLE}
    if not value or word not in known:
        raise AteError(
            f"--token-role {pair!r} gives no role to a value",
            hint=f"<value>=<role>, the role one of {', '.join(sorted(known))}",
        )
    return value, known[word]


def _look_up(claims: Mapping[str, Any], path: str) -> Any:
    if path in claims:  # names of claims may have dots themselves: https://example/roles
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
