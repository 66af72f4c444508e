"""A node agent that mints by an authority of the test's, and an engine's end that notes what it is told."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.egress.agent import AgentCallError
from atenet.worker.egress.certificate import TunnelCertificate
from atenet.worker.ingress import Incarnation
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.support.egress_pki import tunnel_id
from tests.support.pki import Authority

MINUTES = datetime.timedelta(minutes=5)


def issued(
    authority: Authority,
    request: bytes,
    *,
    uris: Sequence[str],
    seconds: float = 3600,
    client: bool = True,
    ca: bool = False,
    early: datetime.timedelta = MINUTES,
) -> bytes:
    """DER. A leaf for the request's key; each part may be wrong."""
    now = datetime.datetime.now(datetime.UTC)
    usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.certificate.subject)
        .public_key(x509.load_der_x509_csr(request).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - early)
        .not_valid_after(now + datetime.timedelta(seconds=seconds))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if uris:
        names = [x509.UniformResourceIdentifier(uri) for uri in uris]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def present_policy(
    known: pb.KnownEgressPolicy, policies: dict[str, pb.EgressPolicy]
) -> pb.PresentEgressPolicy:
    """As the control plane answers."""
    policy = policies.get(known.actor_uid)
    there = (policy or pb.EgressPolicy()).metadata
    if (there.uid, there.version) == (known.policy_uid, known.policy_version):
        return pb.PresentEgressPolicy(actor_uid=known.actor_uid, unchanged=True)
    return pb.PresentEgressPolicy(actor_uid=known.actor_uid, policy=policy)


@dataclass
class FakeAgent:
    """`fail`: what calls get instead of an answer; `policy`: by uid."""

    authority: Authority = field(default_factory=lambda: Authority.create("actor-identity"))
    seconds: float = 3600
    requests: list[bytes] = field(default_factory=list)
    fail: grpc.StatusCode | None = None
    fail_policies: grpc.StatusCode | None = None
    policy: dict[str, pb.EgressPolicy] = field(default_factory=dict)
    not_here: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)

    async def mint(self, actor: Incarnation, request: bytes) -> list[bytes]:
        self.requests.append(request)
        if self.fail is not None:
            raise AgentCallError(self.fail, "as ordered")
        uris = [tunnel_id(str(actor))]
        return [issued(self.authority, request, uris=uris, seconds=self.seconds)]

    async def policies(self, known: Sequence[pb.KnownEgressPolicy]) -> list[pb.PresentEgressPolicy]:
        self.asked.append([k.actor_uid for k in known])
        if self.fail_policies is not None:
            raise AgentCallError(self.fail_policies, "as ordered")
        return [present_policy(k, self.policy) for k in known if k.actor_uid not in self.not_here]


@dataclass
class RecordedCapture:
    """`open_now`: the gateway by uid; the rest: what each uid was told."""

    open_now: dict[str, str | None] = field(default_factory=dict)
    certificates: dict[str, list[TunnelCertificate | None]] = field(default_factory=dict)
    policies: dict[str, list[pb.EgressPolicy]] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    fail_opening: AteError | None = None

    async def open(self, actor: Incarnation, gateway_namespace: Path, gateway: str | None) -> None:
        if self.fail_opening is not None:
            raise self.fail_opening
        self.open_now[actor.uid] = gateway

    def set_certificate(self, uid: str, certificate: TunnelCertificate) -> None:
        self.certificates.setdefault(uid, []).append(certificate)

    def drop_certificate(self, uid: str) -> None:
        self.certificates.setdefault(uid, []).append(None)

    async def set_policy(self, uid: str, policy: pb.EgressPolicy) -> None:
        if uid not in self.open_now:
            raise AteError(f"{uid} is not open")
        kept = pb.EgressPolicy()
        kept.CopyFrom(policy)
        self.policies.setdefault(uid, []).append(kept)

    def confirm_policy(self, uid: str) -> None:
        self.confirmed[uid] = self.confirmed.get(uid, 0) + 1

    async def close_actor(self, uid: str) -> None:
        self.open_now.pop(uid, None)
