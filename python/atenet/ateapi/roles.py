"""Who may call what: the one table of methods and roles, and which SPIFFE id has which role.

docs/roles.md is generated from this table. A method without a row is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from atenet.errors import AteError
from atenet.identity import spiffe

__all__ = ["DEFAULT_BINDINGS", "PEOPLE", "TABLE", "Role", "Roles", "allowed", "parse_binding"]


class Role(Enum):
    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"
    INGRESS_ROUTER = "ingress_router"
    EGRESS_GATEWAY = "egress_gateway"
    ATELET = "atelet"
    CONTROLLER = "controller"

    @property
    def what(self) -> str:
        """One line for people."""
        return _WHAT[self]


_WHAT: Mapping[Role, str] = {
    Role.OWNER: "a person who runs the installation",
    Role.EDITOR: "a person who makes and changes actors, templates and policies",
    Role.VIEWER: "a person who looks",
    Role.INGRESS_ROUTER: "atenet-router: wakes any actor",
    Role.EGRESS_GATEWAY: "atenet-egress: reads any actor and its policy; alone mints for actors",
    Role.ATELET: "a node's agent: speaks for the workers of its own node, and for no others",
    Role.CONTROLLER: "ate-controller: looks after workers",
}

# The roles that a person's token may name; components prove themselves by certificate only.
PEOPLE = frozenset({Role.OWNER, Role.EDITOR, Role.VIEWER})

_OWNER = frozenset({Role.OWNER})
_WRITE = frozenset({Role.OWNER, Role.EDITOR})
_READ = frozenset({*PEOPLE, Role.CONTROLLER})
_WORKERS = frozenset({Role.OWNER, Role.CONTROLLER})
_GATEWAY = frozenset({Role.EGRESS_GATEWAY})
_ROUTER = frozenset({Role.INGRESS_ROUTER})
_NODE = frozenset({Role.ATELET})
_ANYBODY = frozenset(Role)

TABLE: Mapping[str, frozenset[Role]] = {
    "/ateapi.Control/CreateAtespace": _OWNER,
    "/ateapi.Control/GetAtespace": _READ,
    "/ateapi.Control/ListAtespaces": _READ,
    "/ateapi.Control/DeleteAtespace": _OWNER,
    "/ateapi.Control/CreateActorTemplate": _WRITE,
    "/ateapi.Control/GetActorTemplate": _READ,
    "/ateapi.Control/ListActorTemplates": _READ,
    "/ateapi.Control/DeleteActorTemplate": _WRITE,
    "/ateapi.Control/CreateActor": _WRITE,
    "/ateapi.Control/GetActor": _READ | _GATEWAY,
    "/ateapi.Control/UpdateActor": _WRITE,
    # A router looks whether anybody answers: one actor a page, and only the first page.
    "/ateapi.Control/ListActors": _READ | _ROUTER,
    "/ateapi.Control/DeleteActor": _WRITE,
    "/ateapi.Control/ResumeActor": _WRITE | _ROUTER,
    "/ateapi.Control/SuspendActor": _WRITE,
    "/ateapi.Control/PauseActor": _WRITE,
    "/ateapi.Control/RevertActor": _WRITE,
    "/ateapi.Control/GetActorEgressPolicy": _READ | _GATEWAY,
    "/ateapi.Control/CreateActorEgressPolicy": _WRITE,
    "/ateapi.Control/UpdateActorEgressPolicy": _WRITE,
    "/ateapi.Control/DeleteActorEgressPolicy": _WRITE,
    # People never mint: an actor's credentials are for the gateway alone (E-25).
    "/ateapi.Control/MintActorJWT": _GATEWAY,
    "/ateapi.Control/MintActorCertificate": _GATEWAY,
    "/ateapi.Control/CreateWorker": _WORKERS,
    "/ateapi.Control/GetWorker": _READ,
    "/ateapi.Control/UpdateWorker": _WORKERS,
    "/ateapi.Control/ListWorkers": _READ,
    "/ateapi.Control/DeleteWorker": _WORKERS,
    "/ateapi.Control/DrainWorker": _WORKERS,
    "/ateapi.Control/ListWorkerActorAssignments": _READ,
    # The node's name is in the agent's certificate; each handler holds the call to it.
    "/ateapi.WorkerService/RegisterWorker": _NODE,
    "/ateapi.WorkerService/MintWorkerActorCertificate": _NODE,
    "/ateapi.WorkerService/RequestActorSuspend": _NODE,
    "/ateapi.WorkerService/GetWorkerActorEgressPolicies": _NODE,
    "/ateapi.EgressSupport/ListActorEgressDenials": PEOPLE,
    "/ateapi.RouterSupport/Watch": _ROUTER,
    "/ateapi.RouterSupport/Locate": _ROUTER,
    "/grpc.health.v1.Health/Check": _ANYBODY,
    "/grpc.health.v1.Health/List": _ANYBODY,
    "/grpc.health.v1.Health/Watch": _ANYBODY,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _READ,
}

DEFAULT_BINDINGS: tuple[tuple[str, Role], ...] = (
    (spiffe.ROUTER_ID, Role.INGRESS_ROUTER),
    (spiffe.EGRESS_ID, Role.EGRESS_GATEWAY),
    (spiffe.ATELET_ID, Role.ATELET),
    (spiffe.CONTROLLER_ID, Role.CONTROLLER),
    (spiffe.CLI_ID, Role.OWNER),
)


def allowed(roles: Iterable[Role], method: str) -> bool:
    """`method`: the gRPC path, `/ateapi.Control/GetActor`."""
    return not TABLE.get(method, frozenset()).isdisjoint(roles)


class Roles:
    """The roles of certificates. Ids are compared as they are spelled; one may have several."""

    def __init__(self, bindings: Iterable[tuple[str, Role]]) -> None:
        self._of: dict[str, frozenset[Role]] = {}
        for spiffe_id, role in bindings:
            self._of[spiffe_id] = self.of(spiffe_id) | {role}

    def of(self, spiffe_id: str) -> frozenset[Role]:
        """Empty for an id that nobody gave a role."""
        return self._of.get(spiffe_id, frozenset())


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
