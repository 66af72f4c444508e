"""A control plane, a gateway and a worker that tell of denials, and a person who asks for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atenet.address import Address
from atenet.cli.main import ate
from atenet.denials.server import serving_denials
from atenet.denials.settings import DenialsSettings
from atenet.identity import spiffe
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto.egresssupport_pb2_grpc import EgressSupportStub
from click.testing import CliRunner, Result

from tests.support.addresses import unused_port
from tests.support.control_plane import ControlPlane, control_plane, ref
from tests.support.token_issuer import TokenIssuer, token_issuer

GATEWAY, WORKER = "127.0.0.1", "127.1.0.1"
VIEWER = spiffe.pod_id("people", "viewer")


def entry(minute: int, host: str, reason: str = "no-egress-rule") -> dict[str, Any]:
    when = f"2026-01-31T12:{minute:02}:00.000Z"
    what = {"kind": "tls", "host": host, "port": 443, "rule": None}
    return {"first": when, "last": when, "times": 1, **what, "reason": reason, "detail": "no rule"}


@dataclass
class Told:
    """What a process says of `team-a/agent`; who read it."""

    entries: list[dict[str, Any]] = field(default_factory=list)

    def read(self, actor: str) -> str:
        return json.dumps(self.entries if actor == "team-a/agent" else [])


@dataclass
class Stage:
    """A control plane, one gateway and one worker, with denials on one port."""

    plane: ControlPlane
    gateway: Told
    worker: Told
    port: int
    issuer: TokenIssuer

    def stub(self, spiffe_id: str = spiffe.CLI_ID) -> Any:
        component = spiffe_id.rpartition("/")[2]
        return EgressSupportStub(self.plane.channel(component, spiffe_id))

    async def asked(self, name: str = "agent") -> egress_pb.ListActorEgressDenialsResponse:
        request = egress_pb.ListActorEgressDenialsRequest(actor=ref(name))
        answer: egress_pb.ListActorEgressDenialsResponse = await self.stub().ListActorEgressDenials(
            request
        )
        return answer

    @contextlib.contextmanager
    def serving(self, at: str, told: Told, credential: Path) -> Iterator[None]:
        settings = DenialsSettings(
            denials_listen=f"{at}:{self.port}",
            denials_credential=credential,
            denials_trust=self.plane.identity.trust("pod-identity"),
            denials_reader=(spiffe.API_ID,),
        )
        with serving_denials(settings, told.read):
            yield

    def gateway_serves(self) -> contextlib.AbstractContextManager[None]:
        named = [spiffe.EGRESS_SERVER_NAME]
        credential = self.plane.identity.service_credential("egress", named)
        return self.serving(GATEWAY, self.gateway, credential)

    def worker_serves(self, pool: str = "local") -> contextlib.AbstractContextManager[None]:
        worker = spiffe.pod_id("default", pool)
        return self.serving(WORKER, self.worker, self.plane.identity.credential(pool, worker))

    async def ran(self, *words: str) -> Result:
        """`ate policy ...` in a thread: it waits for this loop's control plane."""
        return await asyncio.to_thread(CliRunner().invoke, ate, ["policy", *words])

    @property
    def by_token(self) -> list[str]:
        file = self.plane.root / "token"
        file.write_text(f"{self.issuer.token(roles='guests')}\n")
        roots = str(self.plane.identity.trust("service-dns"))
        return [
            *("--api", self.plane.addresses["tokens"], "--api-roots", roots),
            *("--token-file", str(file)),
        ]


@contextlib.asynccontextmanager
async def denials_stage(root: Path, front: str) -> AsyncIterator[Stage]:
    """`front`: of the control plane, off or auto."""
    async with control_plane(root) as plane:
        port = unused_port(GATEWAY)
        served = plane.identity.service_credential("issuer", ["127.0.0.1"])
        with token_issuer(served) as issuer:
            flags: dict[str, Any] = {
                "egress_denials": Address(GATEWAY, port),
                "egress_denials_roots": plane.identity.trust("service-dns"),
                "worker_denials_port": port,
                "role": (f"{VIEWER}=viewer",),
                "token_listen": Address("127.0.0.1", 0),
                "token_issuer": issuer.url,
                "token_audience": ("atenet",),
                "token_roots": plane.identity.trust("service-dns"),
                "token_role": ("guests=viewer",),
                "front": front,
            }
            async with plane.in_process(**flags):
                await plane.seed("agent", "other")
                await plane.register("worker-1")
                yield Stage(plane, Told(), Told(), port, issuer)
