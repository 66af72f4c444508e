"""A certificate authority: ECDSA P-256, issuing leaves directly."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from atenet.errors import AteError
from atenet.identity import files, pem

__all__ = ["BACKDATE", "LEAF_LIFETIME", "Authority", "Usage"]

# Clocks of machines differ by seconds; a certificate must be good on all of them at once.
BACKDATE = timedelta(minutes=5)
LEAF_LIFETIME = timedelta(hours=24)
AUTHORITY_LIFETIME = timedelta(days=365)


class Usage(Enum):
    """What a leaf may be shown for."""

    CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
    SERVER = ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Authority:
    """One authority's certificate and key."""

    name: str
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(
        cls, name: str, *, lifetime: timedelta = AUTHORITY_LIFETIME, now: datetime | None = None
    ) -> Authority:
        """A new self-signed authority, backdated a little."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = now or datetime.now(UTC)
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "atenet"),
                x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority"),
            ]
        )
        builder = (
            _builder(subject, subject, key.public_key(), now - BACKDATE, now + lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(name, builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(
        cls, certificate: Path, key: Path, *, name: str | None = None, now: datetime | None = None
    ) -> Authority:
        """Reads and checks an authority.

        Raises AteError, naming the file, when a mode is loose, a file is damaged, the two do not
        belong together, or the certificate is no authority or not valid now.
        """
        private = pem.parse_key(files.read_private(key), key)
        try:
            content = certificate.read_bytes()
        except OSError as e:
            raise AteError(f"cannot read {certificate}: {e.strerror}") from e
        found = pem.parse_certificates(content, certificate)[0]
        if found.public_key() != private.public_key():
            raise AteError(
                f"{key} is not the key of {certificate}",
                hint="restore both from the same backup, or delete both",
            )
        _check_authority(found, certificate, now or datetime.now(UTC))
        return cls(name or certificate.stem, found, private)

    @classmethod
    def parse(
        cls, content: bytes, path: Path, *, name: str, now: datetime | None = None
    ) -> Authority:
        """An authority whose key and certificate are one PEM that was read elsewhere.

        Raises AteError, naming `path`, as `load` does.
        """
        private = pem.parse_key(content, path)
        found = pem.parse_certificates(content, path)[0]
        if found.public_key() != private.public_key():
            raise AteError(
                f"{path} is damaged: its key and its certificate do not belong together",
                hint="restore it from a backup",
            )
        _check_authority(found, path, now or datetime.now(UTC))
        return cls(name, found, private)

    def pem(self) -> bytes:
        """Key and certificate as one PEM, which `parse` reads."""
        return pem.key_pem(self.key) + pem.certificate_pem(self.certificate)

    def save(self, certificate: Path, key: Path) -> None:
        """Writes the key first (0600), then the certificate (0644)."""
        files.write_private(key, pem.key_pem(self.key))
        files.write_public(certificate, pem.certificate_pem(self.certificate))

    def issue(
        self,
        public_key: ec.EllipticCurvePublicKey,
        *,
        uri: str | None = None,
        dns: Sequence[str] = (),
        usages: Iterable[Usage],
        lifetime: timedelta = LEAF_LIFETIME,
        backdate: timedelta = BACKDATE,
        now: datetime | None = None,
    ) -> x509.Certificate:
        """Issues a leaf with at most one URI name and any DNS names or IP literals in `dns`.

        `lifetime` counts from its (backdated) start; it never outlives the authority.
        """
        start = (now or datetime.now(UTC)) - backdate
        end = min(start + lifetime, self.certificate.not_valid_after_utc)
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "atenet")])
        issuer_id = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        builder = (
            _builder(subject, self.certificate.subject, public_key, start, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([u.value for u in usages]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id.value),
                critical=False,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.SubjectAlternativeName(_names(uri, dns)), critical=False)
        )
        return builder.sign(self.key, hashes.SHA256())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _names(uri: str | None, dns: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    if uri is not None:
        names.append(x509.UniformResourceIdentifier(uri))
    for name in dns:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            names.append(x509.DNSName(name))
    if not names:
        raise AteError("a certificate needs a name", hint="give a URI or a DNS name")
    return names


def _check_authority(certificate: x509.Certificate, path: Path, now: datetime) -> None:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        is_authority = constraints.value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    if not is_authority:
        raise AteError(f"{path} is not a certificate authority")
    if now < certificate.not_valid_before_utc:
        raise AteError(
            f"{path} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC",
            hint="check this machine's clock; nobody accepts leaves of an authority of tomorrow",
        )
    if now >= certificate.not_valid_after_utc:
        raise AteError(
            f"{path} expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC",
            hint="delete it and its key to have a new authority made",
        )
