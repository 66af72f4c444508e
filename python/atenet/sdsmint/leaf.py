"""Leaves: one signature each, all for one key of this process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from atenet._engine import normal_host
from atenet.identity import pem
from atenet.identity.authority import BACKDATE
from atenet.sdsmint.pool import Signer

__all__ = ["Leaf", "Minter", "RefusedNameError"]

# Names may be longer than a common name can be, and clients look at the alternative names alone.
_SUBJECT = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "egress gateway")])
_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=False,
    crl_sign=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
_SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
_NO_AUTHORITY = x509.BasicConstraints(ca=False, path_length=None)


class RefusedNameError(Exception):
    """No leaf is minted for what is no host name."""


@dataclass(frozen=True)
class Leaf:
    """`chain`: PEM, leaf first. It is valid until `ends`."""

    chain: bytes
    serial: int
    ends: datetime


class Minter:
    """`ttl`: seconds that a leaf is valid from now on."""

    def __init__(self, ttl: float) -> None:
        self._ttl = timedelta(seconds=ttl)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._public = self._key.public_key()
        self._subject_id = x509.SubjectKeyIdentifier.from_public_key(self._public)
        # Of every leaf; it never leaves this machine.
        self.key_pem = pem.key_pem(self._key)

    def mint(self, name: str, signer: Signer, now: datetime | None = None) -> Leaf:
        """A leaf for a server name in whatever case. Raises RefusedNameError."""
        host = self._host(name)
        now = now or datetime.now(UTC)
        ends = min(now + self._ttl, signer.certificate.not_valid_after_utc)
        authority = signer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_SUBJECT)
            .issuer_name(signer.certificate.subject)
            .public_key(self._public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(ends)
            .add_extension(_NO_AUTHORITY, critical=True)
            .add_extension(_USAGE, critical=True)
            .add_extension(_SERVER, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority.value),
                critical=False,
            )
            .add_extension(self._subject_id, critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        )
        leaf = builder.sign(signer.key, hashes.SHA256())
        return Leaf(pem.certificate_pem(leaf, *signer.chain), leaf.serial_number, ends)

    @staticmethod
    def _host(name: str) -> str:
        try:
            host = normal_host(name)
        except ValueError as error:
            raise RefusedNameError(str(error)) from error
        # A server name is never an address (RFC 6066, section 3).
        if host.startswith("[") or host.rpartition(".")[2].isdigit():
            raise RefusedNameError("is an address")
        return host
