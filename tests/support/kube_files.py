"""What is in a pod's volumes, as kubelet would write it: certificates, trust, authorities, ConfigMaps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from atenet.identity import pem, spiffe
from atenet.identity.authority import Authority, Usage

_BOTH = (Usage.CLIENT, Usage.SERVER)
AUTHORITIES = ("pod-identity", "service-dns", "actor-identity", "interception")


class KubeFiles:
    """The authorities of one cluster; `volumes` makes directories for a pod."""

    def __init__(self, directory: Path, *, node: str = "node-1") -> None:
        """`node`: that agents are on."""
        self._directory = directory
        self.node = node
        self.authorities = {name: Authority.create(name) for name in AUTHORITIES}

    def bundle(self, authority: str, *, uri: str | None = None, dns: tuple[str, ...] = ()) -> bytes:
        """A credential bundle."""
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.authorities[authority]
        leaf = issuer.issue(key.public_key(), uri=uri, dns=dns, usages=_BOTH)
        return pem.key_pem(key) + pem.certificate_pem(leaf)

    def volumes(
        self, spec: dict[str, Any], config_maps: dict[str, dict[str, str]]
    ) -> dict[str, Path]:
        """Of the pod's volumes that are no empty directories. `config_maps`: by name."""
        made = {}
        for volume in spec["volumes"]:
            content = self._content(spec["serviceAccountName"], volume, config_maps)
            if content is not None:
                private = "configMap" not in volume
                made[volume["name"]] = self.write(spec, volume["name"], content, private=private)
        return made

    def _content(
        self, account: str, volume: dict[str, Any], config_maps: dict[str, dict[str, str]]
    ) -> dict[str, bytes] | None:
        name = volume["name"]
        if name == "identity" and "emptyDir" not in volume:
            uri = spiffe.pod_id("ate-system", account)
            dns: tuple[str, ...] = (spiffe.pod_dns_name(uri),)
            if uri == spiffe.ATELET_ID:
                dns += (spiffe.node_dns_name(uri, self.node),)
            return {"credential-bundle.pem": self.bundle("pod-identity", uri=uri, dns=dns)}
        if name == "serving":
            service = "api" if account == "ate-api-server" else account
            served = (f"{service}.ate-system.svc",)
            return {"credential-bundle.pem": self.bundle("service-dns", dns=served)}
        if name == "trust":
            return {
                f"{each}.pem": pem.certificate_pem(authority.certificate)
                for each, authority in self.authorities.items()
            }
        if name.startswith("authority-"):
            authority = self.authorities[name.removeprefix("authority-")]
            return {
                "current.pem": pem.key_pem(authority.key)
                + pem.certificate_pem(authority.certificate)
            }
        if "configMap" in volume:
            data = config_maps[volume["configMap"]["name"]]
            return {file: text.encode() for file, text in data.items()}
        return None

    def write(
        self, spec: dict[str, Any], name: str, content: dict[str, bytes], *, private: bool = True
    ) -> Path:
        """The volume of that name: by a link to a directory of its own, which a rotation replaces."""
        group = spec["securityContext"].get("fsGroup", 0)
        directory = self._directory / spec["serviceAccountName"] / name
        inner = directory / "..2026_11_30"
        inner.mkdir(parents=True)
        (directory / "..data").symlink_to("..2026_11_30")
        for file, text in content.items():
            (inner / file).write_bytes(text)
            os.chown(inner / file, 0, group)
            (inner / file).chmod(0o440 if private else 0o644)
            (directory / file).symlink_to(f"..data/{file}")
        return directory
