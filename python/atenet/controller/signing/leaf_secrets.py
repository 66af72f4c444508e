"""Certificates in Secrets, for clusters without pod certificates: issued, renewed and removed."""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from lightkube import ALL_NS, ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.operators import exists
from lightkube.resources.core_v1 import Namespace, Pod, Secret, ServiceAccount

from atenet.controller.signing import names
from atenet.controller.signing.cluster import find, is_conflict, is_missing, labels
from atenet.controller.signing.keys import Keys
from atenet.controller.signing.leaf_plan import (
    Wanted,
    WorkerPod,
    plan_leaves,
    wanted_leaves,
)
from atenet.controller.signing.pod_certificates import pod_of
from atenet.errors import AteError
from atenet.identity.authority import BACKDATE, LEAF_LIFETIME
from atenet.identity.credential import Credential, issue, issued_by

__all__ = ["POOL_LABEL", "LeafSecrets"]

_log = logging.getLogger(__name__)

POOL_LABEL = "ate.dev/workerpool"
_LEAF_LABEL = "ate.dev/leaf"

_Found = dict[tuple[str, str], tuple[Credential | None, str | None]]


class LeafSecrets:
    """Raises AteError or one of UNREACHABLE."""

    def __init__(
        self,
        client: AsyncClient,
        keys: Keys,
        clock: Callable[[], datetime],
        *,
        lifetime: timedelta = LEAF_LIFETIME,
    ) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._lifetime = lifetime

    async def reconcile(self) -> None:
        """Issues what is missing or due, removes what nobody is there for any more."""
        found = await self._found()
        wanted = wanted_leaves(await self._accounts(), await self._pods())
        authorities = {name: await self._keys.current(name) for name in names.SIGNED_HERE}
        credentials = {key: credential for key, (credential, _) in found.items()}
        todo = plan_leaves(wanted, credentials, authorities, self._clock())
        for each in todo.issue:
            bundle = issue(
                each.want,
                authorities[each.authority],
                lifetime=self._lifetime,
                now=self._clock(),
            )
            old = found.get((each.namespace, each.secret))
            await self._write(each, bundle, None if old is None else old[1])
        for namespace, name in todo.remove:
            await self._remove(namespace, name)

    async def stale(self, name: str, current: x509.Certificate, read: datetime) -> int | None:
        """How many Secrets are not of this authority, or were not before `read`: whatever was written
        by then, processes have read. None: some leaves of it are in no Secret."""
        if name != names.SERVICE_DNS:
            return None
        found = [c for (_, s), (c, _) in (await self._found()).items() if _serving(s)]
        return sum(1 for each in found if each is None or not _settled(each.leaf, current, read))

    async def _found(self) -> _Found:
        """Ours by name, those of pods by label, in the namespaces that were made ready for them."""
        found: _Found = {}
        for name in _component_secrets():
            secret = await find(self._client, Secret, name, names.NAMESPACE)
            if secret is not None and secret.metadata is not None:
                version = secret.metadata.resourceVersion
                found[names.NAMESPACE, name] = (_credential(secret), version)
        async for namespace in self._client.list(Namespace, labels={names.WORKERS_LABEL: "true"}):
            where = str(namespace.metadata.name) if namespace.metadata is not None else ""
            ours = self._client.list(Secret, namespace=where, labels={_LEAF_LABEL: "true"})
            async for each in ours:
                if each.metadata is not None:
                    version = each.metadata.resourceVersion
                    found[where, str(each.metadata.name)] = (_credential(each), version)
        return found

    async def _accounts(self) -> dict[str, str]:
        uids: dict[str, str] = {}
        for name in names.services().values():
            found = await find(self._client, ServiceAccount, name, names.NAMESPACE)
            if found is not None and found.metadata is not None:
                uids[name] = str(found.metadata.uid)
        return uids

    async def _pods(self) -> list[WorkerPod]:
        pods = self._client.list(Pod, namespace=ALL_NS, labels={POOL_LABEL: exists()})
        return [_worker_pod(each) async for each in pods if each.metadata is not None]

    async def _write(self, wanted: Wanted, bundle: bytes, version: str | None) -> None:
        owner = wanted.owner
        secret = Secret(
            metadata=ObjectMeta(
                name=wanted.secret,
                namespace=wanted.namespace,
                labels={**labels(), _LEAF_LABEL: "true"},
                ownerReferences=[
                    OwnerReference(
                        apiVersion=owner.api_version,
                        kind=owner.kind,
                        name=owner.name,
                        uid=owner.uid,
                    )
                ],
                resourceVersion=version,
            ),
            data={names.BUNDLE_KEY: b64encode(bundle).decode()},
        )
        try:
            await (self._client.create(secret) if version is None else self._client.replace(secret))
        except ApiError as e:
            if not (is_conflict(e) or is_missing(e) or e.status.code == 403):
                raise
            # Changed meanwhile, or its namespace is going: looked at again the next time.
            _log.warning("cannot write a certificate", extra={**_where(wanted), "error": str(e)})
            return
        _log.info("certificate issued", extra=_where(wanted))

    async def _remove(self, namespace: str, name: str) -> None:
        try:
            await self._client.delete(Secret, name, namespace=namespace)
        except ApiError as e:
            if not is_missing(e):
                raise


def _component_secrets() -> list[str]:
    found = [
        (names.serving_secret(s), names.identity_secret(a)) for s, a in names.services().items()
    ]
    return [name for pair in found for name in pair]


def _worker_pod(found: Pod) -> WorkerPod:
    pod, meta = pod_of(found), found.metadata or ObjectMeta()
    volumes = (found.spec.volumes if found.spec is not None else None) or []
    mounted = [each.secret.secretName for each in volumes if each.secret is not None]
    projected = [each.projected for each in volumes if each.projected is not None]
    sources = [source for each in projected for source in each.sources or []]
    mounted += [source.secret.name for source in sources if source.secret is not None]
    return WorkerPod(
        str(meta.namespace),
        str(meta.name),
        pod.uid,
        pod.service_account,
        frozenset(each for each in mounted if each),
        pod.over,
    )


def _credential(secret: Secret) -> Credential | None:
    content = (secret.data or {}).get(names.BUNDLE_KEY)
    try:
        return None if content is None else Credential.parse(b64decode(content), Path("Secret"))
    except AteError:
        return None


def _settled(leaf: x509.Certificate, current: x509.Certificate, read: datetime) -> bool:
    return issued_by(leaf, current) and leaf.not_valid_before_utc + BACKDATE <= read


def _serving(secret: str) -> bool:
    return secret.startswith(names.serving_secret(""))


def _where(wanted: Wanted) -> dict[str, str]:
    return {"secret": f"{wanted.namespace}/{wanted.secret}", "authority": wanted.authority}
