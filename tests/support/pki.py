"""Certificates for tests, right and wrong ones.

Made with `cryptography` directly and not through `atenet.identity`: a test must be able to issue
what the product never would (two URI SANs, a foreign authority, an expired leaf).
"""

import datetime
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROUTER_ID = "spiffe://cluster.local/ns/ate-system/sa/atenet-router"
API_ID = "spiffe://cluster.local/ns/ate-system/sa/ate-api-server"
WORKER_ID = "spiffe://cluster.local/ns/default/sa/local"
EDGE_CLIENT_ID = "spiffe://cluster.local/ns/web/sa/frontend"
API_NAME = "api.ate-system.svc"
ROUTER_NAME = "atenet-router.ate-system.svc"

_HOUR = datetime.timedelta(hours=1)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePublicKey, age: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - age - _HOUR)
        .not_valid_after(now - age + _HOUR)
    )


@dataclass(frozen=True)
class Authority:
    """A certificate authority of one test session."""

    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, name: str) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(name, name, key.public_key(), datetime.timedelta())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(name, key, certificate)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, *, uris: Sequence[str] = (), dns: Sequence[str] = (), expired: bool = False
    ) -> bytes:
        """Key and chain in one PEM, as the product's credential bundles are."""
        key = ec.generate_private_key(ec.SECP256R1())
        age = datetime.timedelta(days=1) if expired else datetime.timedelta()
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        names += [x509.DNSName(name) for name in dns]
        leaf = (
            _builder("leaf", self.name, key.public_key(), age)
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
                ),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return secret + leaf.public_bytes(serialization.Encoding.PEM)


class Pki:
    """The authorities of a system and the bundles its processes need, as files below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pods = Authority.create("pod-identity")
        self.services = Authority.create("service-dns")
        self.foreign = Authority.create("foreign")
        self.pod_roots = self.write("pod-identity.pem", self.pods.pem, mode=0o644)
        self.service_roots = self.write("service-dns.pem", self.services.pem, mode=0o644)
        self.router = self.write("router-pod.pem", self.pods.issue(uris=[ROUTER_ID]))
        self.router_edge = self.write("router-service.pem", self.services.issue(dns=[ROUTER_NAME]))
        self.api = self.write("api-service.pem", self.services.issue(dns=[API_NAME]))
        self.worker = self.write("worker-pod.pem", self.pods.issue(uris=[WORKER_ID]))

        self.edge_credential = self.write("client-pod.pem", self.pods.issue(uris=[EDGE_CLIENT_ID]))

    def write(self, name: str, content: bytes, *, mode: int = 0o600) -> Path:
        path = self.root / name
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def edge_client(self, alpn: Sequence[str]) -> ssl.SSLContext:
        """What a client of the router verifies it with."""
        context = ssl.create_default_context(cadata=self.services.pem.decode())
        context.set_alpn_protocols(list(alpn))
        return context

    def known_client(self, alpn: Sequence[str]) -> ssl.SSLContext:
        """The same for a client that the Envoy dataplane's list names."""
        context = self.edge_client(alpn)
        context.load_cert_chain(self.edge_credential)
        return context

    def worker_server(self, credential: Path | None = None) -> ssl.SSLContext:
        """A worker's TLS: h2 only, and the client must be a pod."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(credential or self.worker)
        context.load_verify_locations(self.pod_roots)
        context.verify_mode = ssl.CERT_REQUIRED
        context.set_alpn_protocols(["h2"])
        return context
