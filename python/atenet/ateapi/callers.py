"""Who is calling: from the peer's certificate, or from its bearer token, to a subject and roles."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import grpc.aio

from atenet.ateapi.failure import CallError
from atenet.ateapi.roles import Role, Roles, allowed
from atenet.identity import spiffe
from atenet.rpc import dns_names_in, fronted_auth_context, spiffe_id_in

__all__ = ["Access", "Caller", "TokenError", "TokenVerifier", "current", "own_node"]

_BEARER = "bearer "


@dataclass(frozen=True)
class Caller:
    """`subject`: a SPIFFE id, or a token's issuer and subject. `node`: of a node's agent."""

    subject: str
    roles: frozenset[Role]
    node: str | None = None


class TokenError(Exception):
    """The token proves nobody. The message is the caller's: it never quotes the token."""


class TokenVerifier(Protocol):
    async def verify(self, token: str) -> tuple[str, frozenset[Role]]:
        """The token's subject and roles. Raises TokenError."""


_current: ContextVar[Caller] = ContextVar("caller")


def current() -> Caller:
    """The caller of the call that is being answered."""
    return _current.get()


def own_node() -> str:
    """The calling node agent's node. Raises PermissionDenied when its certificate names none."""
    node = current().node
    if node is None:
        raise CallError(
            grpc.StatusCode.PERMISSION_DENIED,
            "the client certificate names no node: a node agent's carries the DNS name"
            f" <node>.{spiffe.pod_dns_name(spiffe.ATELET_ID)}",
        )
    return node


class Access:
    """Authenticates and authorises. `tokens`: None where no issuer is configured.

    `fronted`: all calls come through the engine's front, which says who the callers are.
    """

    def __init__(
        self, roles: Roles, tokens: TokenVerifier | None = None, *, fronted: bool = False
    ) -> None:
        self._roles = roles
        self._tokens = tokens
        self._fronted = fronted

    async def admit(self, context: grpc.aio.ServicerContext[Any, Any], path: str) -> Caller:
        """The caller, remembered for `current()`; it may call `path`.

        Raises CallError: Unauthenticated for nobody, PermissionDenied for whom no role lets in.
        """
        caller = await self._caller(context)
        if not allowed(caller.roles, path):
            method = path.rpartition("/")[2]
            raise CallError(
                grpc.StatusCode.PERMISSION_DENIED, f"{caller.subject} may not call {method}"
            )
        _current.set(caller)
        return caller

    async def _caller(self, context: grpc.aio.ServicerContext[Any, Any]) -> Caller:
        auth = fronted_auth_context(context) if self._fronted else context.auth_context()
        certified = "x509_pem_cert" in auth
        token = _bearer(context)
        if token is not None and certified:
            # Two answers to one question: no guess which of them was meant.
            raise _nobody("show a client certificate or a bearer token, not both")
        if token is not None:
            return await self._token_caller(token)
        if not certified:
            raise _nobody("show a client certificate or a bearer token")
        spiffe_id = spiffe_id_in(auth)
        if spiffe_id is None:
            raise _nobody("the client certificate must have exactly one URI name")
        roles = self._roles.of(spiffe_id)
        node = _node(dns_names_in(auth), spiffe_id) if Role.ATELET in roles else None
        return Caller(spiffe_id, roles, node)

    async def _token_caller(self, token: str) -> Caller:
        if self._tokens is None:
            raise _nobody("this control plane takes no bearer tokens; show a client certificate")
        try:
            subject, roles = await self._tokens.verify(token)
        except TokenError as e:
            raise _nobody(str(e)) from e
        return Caller(subject, roles)


def _bearer(context: grpc.aio.ServicerContext[Any, Any]) -> str | None:
    """The token of the `authorization` metadata. Raises Unauthenticated for any other use of it."""
    given = [v for k, v in context.invocation_metadata() or () if k == "authorization"]
    if not given:
        return None
    value = given[0]
    if len(given) > 1 or not isinstance(value, str) or value[:7].lower() != _BEARER:
        raise _nobody("authorization must be given once, as: Bearer <token>")
    return value[7:].strip()


def _node(names: list[str], spiffe_id: str) -> str | None:
    """The one node that the agent's certificate names beside its pod's name."""
    named = [spiffe.parse_node_dns_name(spiffe_id, name) for name in names]
    nodes = [node for node in named if node is not None]
    return nodes[0] if len(nodes) == 1 else None


def _nobody(message: str) -> CallError:
    return CallError(grpc.StatusCode.UNAUTHENTICATED, message)
