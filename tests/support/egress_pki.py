"""Certificates of an egress gateway's tests: tunnels' right and wrong ones, origins', the interception authority."""

import datetime
import ssl
from pathlib import Path

from atenet.identity.spiffe import CLI_ID
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.support.pki import Authority, Pki, _builder

GATEWAY_NAME = "atenet-egress.ate-system.svc"
GATEWAY_ID = "spiffe://cluster.local/ns/ate-system/sa/atenet-egress"


def tunnel_id(actor: str) -> str:
    return f"spiffe://substrate-actor.local/worker-for-actor/{actor}"


class EgressPki:
    """Beside a system's authorities: actor identity, interception, and the origins' public ones."""

    def __init__(self, pki: Pki) -> None:
        self.pki = pki
        self.actors = Authority.create("actor-identity")
        self.interception = Authority.create("interception")
        self.origins = Authority.create("origins")
        self.actor_roots = pki.write("actor-identity.pem", self.actors.pem, mode=0o644)
        self.origin_roots = pki.write("origins.pem", self.origins.pem, mode=0o644)
        self.gateway = pki.write("egress-service.pem", pki.services.issue(dns=[GATEWAY_NAME]))
        self.gateway_pod = pki.write("egress-pod.pem", pki.pods.issue(uris=[GATEWAY_ID]))
        key = self.interception.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        self.interception_ca = pki.write("interception.pem", key + self.interception.pem)
        self._count = 0
        self._tunnels: dict[str, ssl.SSLContext] = {}

    def client(self, credential: bytes | None) -> ssl.SSLContext:
        """A worker's TLS towards the gateway, with this key and chain."""
        context = ssl.create_default_context(cadata=self.pki.services.pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        if credential is not None:
            context.load_cert_chain(self._file(credential))
        return context

    def denials_flags(self) -> list[str]:
        """Where a gateway tells the local person what it denied."""
        return [
            "--denials-listen=127.0.0.1:0",
            f"--denials-credential={self.gateway}",
            f"--denials-trust={self.pki.pod_roots}",
        ]

    def person(self) -> ssl.SSLContext:
        """The local person's TLS towards it."""
        context = ssl.create_default_context(cafile=str(self.pki.service_roots))
        context.load_cert_chain(self._file(self.pki.pods.issue(uris=[CLI_ID])))
        return context

    def tunnel_client(self, actor: str) -> ssl.SSLContext:
        if actor not in self._tunnels:
            self._tunnels[actor] = self.client(self.actors.issue(uris=[tunnel_id(actor)]))
        return self._tunnels[actor]

    def origin_server(
        self,
        *names: str,
        authority: Authority | None = None,
        alpn: tuple[str, ...] = ("http/1.1",),
        **issue: bool,
    ) -> ssl.SSLContext:
        """An origin's TLS for these names, HTTP/1.1 only; without `alpn` it picks no protocol."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._file((authority or self.origins).issue(dns=names, **issue)))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def actor_client(self, *alpn: str) -> ssl.SSLContext:
        """An actor that trusts the interception authority and nobody else."""
        context = ssl.create_default_context(cadata=self.interception.pem.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(list(alpn or ("http/1.1",)))
        return context

    def pinned_client(self) -> ssl.SSLContext:
        """An actor that trusts the origins' own authority only."""
        context = ssl.create_default_context(cadata=self.origins.pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        return context

    def server_only(self, actor: str) -> bytes:
        """The right name in a certificate that is not meant for clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.UniformResourceIdentifier(tunnel_id(actor))]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        leaf = (
            _builder("leaf", self.actors.name, key.public_key(), datetime.timedelta())
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(usage, critical=False)
            .sign(self.actors.key, hashes.SHA256())
        )
        return _bundle(key, leaf)

    def authority_with_name(self, actor: str) -> bytes:
        """The right name in an authority's certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.UniformResourceIdentifier(tunnel_id(actor))]
        leaf = (
            _builder("leaf", self.actors.name, key.public_key(), datetime.timedelta())
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self.actors.key, hashes.SHA256())
        )
        return _bundle(key, leaf)

    def _file(self, credential: bytes) -> Path:
        self._count += 1
        return self.pki.write(f"egress-{self._count}.pem", credential)


def _bundle(key: ec.EllipticCurvePrivateKey, leaf: x509.Certificate) -> bytes:
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret + leaf.public_bytes(serialization.Encoding.PEM)
