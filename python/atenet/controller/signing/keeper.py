"""Authorities in the cluster: keys in Secrets, certificates in one ConfigMap; each write is compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from lightkube import ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Secret

from atenet.controller.signing import names
from atenet.controller.signing.cluster import find, is_conflict, labels
from atenet.controller.signing.holding import Holding
from atenet.errors import AteError
from atenet.identity import pem

__all__ = ["Keeper", "Kept", "bundle_pem", "parse_bundle"]


@dataclass(frozen=True)
class Kept:
    """A holding and the version of the Secret that it was read from."""

    holding: Holding
    version: str | None
    notes: dict[str, str]


class Keeper:
    """Reads and writes the authorities of one installation. Raises one of UNREACHABLE, or AteError."""

    def __init__(self, client: AsyncClient, namespace: str = names.NAMESPACE) -> None:
        self.client = client
        self.namespace = namespace

    async def kept(self, name: str, now: datetime) -> Kept:
        """The authority's keys. Raises AteError when there are none, or they are of no use."""
        secret = await find(self.client, Secret, names.authority_secret(name), self.namespace)
        if secret is None or secret.metadata is None:
            raise AteError(
                f"there is no Secret {self.namespace}/{names.authority_secret(name)}",
                hint="`ate-setup install` makes it where it is missing; if it was there, restore it",
            )
        notes = dict(secret.metadata.annotations or {})
        holding = Holding.parse(name, secret.data or {}, notes, now)
        return Kept(holding, secret.metadata.resourceVersion, notes)

    async def create(self, holding: Holding) -> bool:
        """False when there is one already: it is left as it is."""
        try:
            await self.client.create(self._secret(holding, None, {}))
        except ApiError as e:
            if is_conflict(e):
                return False
            raise
        return True

    async def store(self, old: Kept, holding: Holding) -> bool:
        """False when somebody changed the Secret since it was read."""
        foreign = {k: v for k, v in old.notes.items() if k not in old.holding.notes()}
        try:
            await self.client.replace(self._secret(holding, old.version, foreign))
        except ApiError as e:
            if is_conflict(e):
                return False
            raise
        return True

    async def bundles(self) -> dict[str, tuple[x509.Certificate, ...]]:
        """Whom each authority's peers are to trust."""
        found = await find(self.client, ConfigMap, names.AUTHORITIES_MAP, self.namespace)
        data = (found.data or {}) if found is not None else {}
        return {
            name: parse_bundle(data[names.trust_key(name)], name)
            for name in names.ALL_AUTHORITIES
            if names.trust_key(name) in data
        }

    async def publish(self, name: str, bundle: Iterable[x509.Certificate]) -> bool:
        """Replaces one authority's bundle. False when somebody changed the map meanwhile."""
        key, text = names.trust_key(name), bundle_pem(bundle)
        found = await find(self.client, ConfigMap, names.AUTHORITIES_MAP, self.namespace)
        meta = ObjectMeta(name=names.AUTHORITIES_MAP, namespace=self.namespace, labels=labels())
        try:
            if found is None or found.metadata is None:
                await self.client.create(ConfigMap(metadata=meta, data={key: text}))
            else:
                meta.resourceVersion = found.metadata.resourceVersion
                data = {**(found.data or {}), key: text}
                await self.client.replace(ConfigMap(metadata=meta, data=data))
        except ApiError as e:
            if is_conflict(e):
                return False
            raise
        return True

    def _secret(self, holding: Holding, version: str | None, notes: dict[str, str]) -> Secret:
        return Secret(
            metadata=ObjectMeta(
                name=names.authority_secret(holding.name),
                namespace=self.namespace,
                labels=labels(),
                annotations={**notes, **holding.notes()},
                resourceVersion=version,
            ),
            data=holding.data(),
        )


def bundle_pem(bundle: Iterable[x509.Certificate]) -> str:
    """As files and maps have it."""
    return pem.certificate_pem(*bundle).decode()


def parse_bundle(text: str, name: str) -> tuple[x509.Certificate, ...]:
    """Raises AteError naming the map's key."""
    where = Path(names.AUTHORITIES_MAP) / names.trust_key(name)
    return tuple(pem.parse_certificates(text.encode(), where))
