"""Volumes: certificates, trust, authorities, and what containers of a pod share. Pure."""

from __future__ import annotations

from atenet.setup.objects.names import IDENTITY, SERVING, TRUST, Object

__all__ = [
    "BUNDLE",
    "IDENTITY_FILE",
    "SERVING_FILE",
    "authority",
    "authority_file",
    "identity",
    "scratch",
    "secret",
    "serving",
    "trust",
    "trust_file",
]

BUNDLE = "credential-bundle.pem"
IDENTITY_FILE = f"{IDENTITY}/{BUNDLE}"
SERVING_FILE = f"{SERVING}/{BUNDLE}"
_SIGNERS = {"identity": "ate.dev/pod-identity", "serving": "ate.dev/service-dns"}
# Key files: their owner and the pod's own group, nobody else.
_MODE = 0o440


def identity(account: str, *, pod_certificates: bool) -> Object:
    """The pod's own certificate; `account` is its ServiceAccount."""
    return _certificate("identity", f"ate-identity-{account}", pod_certificates)


def serving(service: str, *, pod_certificates: bool) -> Object:
    """The certificate with the Service's name."""
    return _certificate("serving", f"ate-serving-{service}", pod_certificates)


def _certificate(volume: str, name: str, pod_certificates: bool) -> Object:
    if not pod_certificates:
        return secret(volume, name, {BUNDLE: BUNDLE})
    request = {
        "signerName": _SIGNERS[volume],
        "keyType": "ECDSAP256",
        "credentialBundlePath": BUNDLE,
    }
    return {
        "name": volume,
        "projected": {"sources": [{"podCertificate": request}], "defaultMode": _MODE},
    }


def secret(volume: str, name: str, items: dict[str, str]) -> Object:
    """`items`: key -> file."""
    picked = [{"key": key, "path": path} for key, path in items.items()]
    return {
        "name": volume,
        "secret": {"secretName": name, "defaultMode": _MODE, "items": picked},
    }


def authority(name: str) -> Object:
    """The key of an authority: for the one container that signs with it."""
    # Without `items`: `next.pem` comes and goes with a rotation.
    return {
        "name": f"authority-{name}",
        "secret": {"secretName": f"ate-authority-{name}", "defaultMode": _MODE},
    }


def authority_file(name: str) -> str:
    """Certificate and key, in one PEM."""
    return f"/run/ate/authority/{name}/current.pem"


def trust() -> Object:
    """Whom to trust, kept by ate-controller in every namespace that needs it."""
    return {"name": "trust", "configMap": {"name": "ate-trust"}}


def trust_file(authority_name: str) -> str:
    """PEM of an authority's certificates."""
    return f"{TRUST}/{authority_name}.pem"


def scratch(name: str, *, memory: bool = False, size: str = "64Mi") -> Object:
    """An empty directory for as long as the pod lives."""
    medium = {"medium": "Memory"} if memory else {}
    return {"name": name, "emptyDir": {**medium, "sizeLimit": size}}
