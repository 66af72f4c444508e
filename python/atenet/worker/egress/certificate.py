"""An actor's tunnel certificate: its key, the request for it, and the checks of what comes back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from atenet.errors import AteError

__all__ = ["TunnelCertificate", "UnusableCertificateError", "checked", "new_key", "signing_request"]


class UnusableCertificateError(AteError):
    """What was minted is not what was asked for."""


@dataclass(frozen=True)
class TunnelCertificate:
    """`chain`: DER, leaf first; `key`: PKCS #8, DER."""

    chain: tuple[bytes, ...]
    key: bytes = field(repr=False)
    not_after: datetime


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def signing_request(key: ec.EllipticCurvePrivateKey) -> bytes:
    """DER. It names nobody: who the certificate is for, the control plane knows."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def checked(
    chain: Sequence[bytes], key: ec.EllipticCurvePrivateKey, uri: str, now: datetime
) -> TunnelCertificate:
    """The chain with its key, if it proves exactly `uri` to a gateway now.

    Whether the gateway trusts who issued it is the gateway's to judge. Raises
    UnusableCertificateError.
    """
    if not chain:
        raise UnusableCertificateError("the control plane answered with no certificate")
    try:
        parsed = [x509.load_der_x509_certificate(der) for der in chain]
    except ValueError as e:
        raise UnusableCertificateError(f"the minted certificate cannot be read: {e}") from e
    leaf = parsed[0]
    if leaf.public_key() != key.public_key():
        raise UnusableCertificateError("the minted certificate is for another key")
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        raise UnusableCertificateError(
            f"the minted certificate is valid from {leaf.not_valid_before_utc} to"
            f" {leaf.not_valid_after_utc}, and now it is {now}",
            hint="compare this machine's clock with the control plane's",
        )
    _check_purpose(leaf)
    _check_name(leaf, uri)
    _check_links(parsed)
    secret = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return TunnelCertificate(tuple(chain), secret, leaf.not_valid_after_utc)


def _check_purpose(leaf: x509.Certificate) -> None:
    try:
        usages = list(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        usages = []
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
        raise UnusableCertificateError("the minted certificate is not for clients")
    try:
        authority = leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        authority = False
    if authority:
        raise UnusableCertificateError("the minted certificate is an authority's")


def _check_name(leaf: x509.Certificate, uri: str) -> None:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        found: list[str] = []
    else:
        found = names.get_values_for_type(x509.UniformResourceIdentifier)
    if found != [uri]:
        raise UnusableCertificateError(f"the minted certificate names {found}, not {uri}")


def _check_links(chain: Sequence[x509.Certificate]) -> None:
    for at, (one, next_one) in enumerate(pairwise(chain)):
        try:
            one.verify_directly_issued_by(next_one)
        except (ValueError, TypeError, InvalidSignature) as e:
            raise UnusableCertificateError(
                f"certificate {at} of the minted chain was not issued by the one behind it"
            ) from e
