"""Who may call what: one table of roles, and which SPIFFE id has which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.proto import ateapi_pb2 as pb

__all__ = ["DEFAULT_BINDINGS", "Role", "Roles", "parse_binding"]


class Role(Enum):
    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"
    INGRESS_ROUTER = "ingress_router"
    EGRESS_GATEWAY = "egress_gateway"
    ATELET = "atelet"
    CONTROLLER = "controller"


def _methods(service: str) -> frozenset[str]:
    found = pb.DESCRIPTOR.services_by_name[service].methods
    return frozenset(f"/ateapi.{service}/{m.name}" for m in found)


def _control(*names: str) -> frozenset[str]:
    wanted = frozenset(f"/ateapi.Control/{n}" for n in names)
    unknown = wanted - _methods("Control")
    if unknown:
        raise AssertionError(f"no such methods: {sorted(unknown)}")
    return wanted


_MINT = _control("MintActorJWT", "MintActorCertificate")
_READ = frozenset(
    m for m in _methods("Control") if m.rpartition("/")[2].startswith(("Get", "List"))
)
_WORKERS = frozenset(m for m in _methods("Control") if "Worker" in m)
_ATESPACES = _control("CreateAtespace", "DeleteAtespace")

# People never mint: an actor's credentials are for the gateway alone (E-25).
_ALLOWED: Mapping[Role, frozenset[str]] = {
    Role.OWNER: _methods("Control") - _MINT,
    Role.EDITOR: _methods("Control") - _MINT - _ATESPACES - (_WORKERS - _READ),
    Role.VIEWER: _READ,
    Role.INGRESS_ROUTER: _control("ResumeActor"),
    Role.EGRESS_GATEWAY: _control("GetActor", "GetActorEgressPolicy") | _MINT,
    Role.ATELET: _methods("WorkerService"),
    Role.CONTROLLER: _WORKERS | _READ,
}

DEFAULT_BINDINGS: tuple[tuple[str, Role], ...] = (
    (spiffe.ROUTER_ID, Role.INGRESS_ROUTER),
    (spiffe.EGRESS_ID, Role.EGRESS_GATEWAY),
    (spiffe.ATELET_ID, Role.ATELET),
    (spiffe.CONTROLLER_ID, Role.CONTROLLER),
    (spiffe.CLI_ID, Role.OWNER),
)


class Roles:
    """Ids are compared as they are spelled; one id may have several roles."""

    def __init__(self, bindings: Iterable[tuple[str, Role]]) -> None:
        self._allowed: dict[str, frozenset[str]] = {}
        for spiffe_id, role in bindings:
            before = self._allowed.get(spiffe_id, frozenset())
            self._allowed[spiffe_id] = before | _ALLOWED[role]

    def allows(self, spiffe_id: str, method: str) -> bool:
        """`method`: the gRPC path, `/ateapi.Control/GetActor`."""
        return method in self._allowed.get(spiffe_id, frozenset())


def parse_binding(given: str) -> tuple[str, Role]:
    """`<spiffe id>=<role>`. Raises AteError."""
    spiffe_id, _, word = given.rpartition("=")
    try:
        role = Role(word)
    except ValueError:
        known = ", ".join(r.value for r in Role)
        raise AteError(f"no role {word!r} in {given!r}", hint=f"one of {known}") from None
    spiffe.parse_pod_id(spiffe_id)
    return spiffe_id, role
