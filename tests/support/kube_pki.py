"""What a cluster of the tests proves itself with: certificates, the key of its tokens, kubeconfigs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = ("kubernetes-admin", "system:masters")
CONTROLLER_MANAGER = ("system:kube-controller-manager", None)
SCHEDULER = ("system:kube-scheduler", None)


@dataclass
class KubePki:
    """Files below `root`; one authority for servers and clients alike."""

    root: Path
    server: str
    _authority: trustme.CA = field(
        default_factory=lambda: trustme.CA(key_type=trustme.KeyType.ECDSA)
    )

    def __post_init__(self) -> None:
        self._authority.cert_pem.write_to_path(str(self.ca))
        self._authority.private_key_pem.write_to_path(str(self.ca_key))
        self.ca_key.chmod(0o600)
        _write_key_pair(self.token_key, self.token_public_key)

    @property
    def ca(self) -> Path:
        return self.root / "ca.pem"

    @property
    def ca_key(self) -> Path:
        return self.root / "ca.key"

    @property
    def token_key(self) -> Path:
        return self.root / "tokens.key"

    @property
    def token_public_key(self) -> Path:
        return self.root / "tokens.pub"

    def serving(self, *names: str) -> tuple[Path, Path]:
        """Certificate and key of a server that answers to these names and addresses."""
        return self._issue("serving", names, None, None)

    def kubeconfig(self, name: str, group: str | None = None) -> Path:
        """Of a user by certificate: its common name, and one group."""
        file = self.root / f"{_file_name(name)}.kubeconfig"
        certificate, key = self._issue(file.stem, ("client.invalid",), name, group)
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        return self._write_kubeconfig(file, user)

    def certificate(self, name: str) -> tuple[Path, Path]:
        """That user's certificate and key, once there is a kubeconfig."""
        return self.root / f"{_file_name(name)}.pem", self.root / f"{_file_name(name)}.key"

    def token_kubeconfig(self, name: str, token: str) -> Path:
        """Of whoever the token is for."""
        return self._write_kubeconfig(self.root / f"{name}.kubeconfig", {"token": token})

    def _issue(
        self, name: str, names: Sequence[str], common_name: str | None, group: str | None
    ) -> tuple[Path, Path]:
        made = self._authority.issue_cert(
            *names,
            common_name=common_name,
            organization_name=group,
            key_type=trustme.KeyType.ECDSA,
        )
        certificate, key = self.certificate(name)
        certificate.write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
        key.write_bytes(made.private_key_pem.bytes())
        key.chmod(0o600)
        return certificate, key

    def _write_kubeconfig(self, file: Path, user: dict[str, str]) -> Path:
        context = {"cluster": "test", "user": "user"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.server, "certificate-authority": str(self.ca)},
                }
            ],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        file.write_text(yaml.safe_dump(content))
        file.chmod(0o600)
        return file


def _file_name(user: str) -> str:
    return user.replace(":", "-")


def _write_key_pair(private: Path, public: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
