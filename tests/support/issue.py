"""Certificates that a well-behaved identity directory never issues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from atenet.identity import Authority
from atenet.identity.files import write_private
from atenet.identity.pem import certificate_pem, key_pem
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID


def odd_credential(
    path: Path,
    authority: Authority,
    *,
    uris: list[str],
    dns: list[str] | None = None,
    age: timedelta = timedelta(0),
    lifetime: timedelta = timedelta(hours=1),
    server_only: bool = False,
) -> Path:
    """A bundle with any number of URI names, of any age."""
    key = ec.generate_private_key(ec.SECP256R1())
    start = datetime.now(UTC) - timedelta(minutes=5) - age
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(u) for u in uris]
    names += [x509.DNSName(d) for d in dns or []]
    usage = ExtendedKeyUsageOID.SERVER_AUTH if server_only else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
    leaf = builder.sign(authority.key, hashes.SHA256())
    write_private(path, key_pem(key) + certificate_pem(leaf))
    return path
