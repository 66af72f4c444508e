"""Trust bundles where they are needed: a copy of the one ConfigMap in each namespace, and ClusterTrustBundles."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx2
from lightkube import ALL_NS, ApiError, AsyncClient
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.certificates_v1 import ClusterTrustBundleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.certificates_v1 import ClusterTrustBundle
from lightkube.resources.core_v1 import ConfigMap, Namespace

from atenet.controller.signing import names
from atenet.controller.signing.cluster import find, is_conflict, is_missing, labels

__all__ = ["Copies", "Plan", "Trust", "plan"]

_log = logging.getLogger(__name__)

_WorkerPool = create_namespaced_resource("ate.dev", "v1alpha1", "WorkerPool", "workerpools")

Data = Mapping[str, str]
# namespace -> what its copy says
Copies = Mapping[str, Data]


@dataclass(frozen=True)
class Plan:
    """Namespaces whose copy is to be written, and whose is to go."""

    write: frozenset[str]
    remove: frozenset[str]


def plan(wanted: Data, needed: Iterable[str], copies: Copies) -> Plan:
    """Pure. An empty source writes nothing: no bundle is taken away by a map that is not there yet."""
    needed = frozenset(needed)
    if not wanted:
        return Plan(frozenset(), frozenset())
    behind = {each for each in needed if dict(copies.get(each, {})) != dict(wanted)}
    return Plan(frozenset(behind), frozenset(copies) - needed)


class Trust:
    """Keeps the copies. Raises one of UNREACHABLE."""

    def __init__(
        self, client: AsyncClient, namespace: str = names.NAMESPACE, *, cluster_bundles: bool = True
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._cluster_bundles = cluster_bundles

    async def reconcile(self) -> bool:
        """Writes what differs. True when something did."""
        wanted, copies = await self._wanted(), await self._copies()
        todo = plan(wanted, await self._needed(), copies)
        for namespace in sorted(todo.write):
            await self._write(namespace, wanted, known=namespace in copies)
        for namespace in sorted(todo.remove):
            await self._remove(namespace)
        changed = bool(todo.write or todo.remove)
        return await self._write_cluster_bundles(wanted) or changed

    async def spread(self, name: str) -> bool:
        """Whether every copy of this authority's bundle is what it is to be."""
        key, wanted = names.trust_key(name), await self._wanted()
        if key not in wanted:
            return False
        copies = await self._copies()
        if any(copies.get(each, {}).get(key) != wanted[key] for each in await self._needed()):
            return False
        bundle = await self._cluster_bundle(name)
        return bundle is None or bundle.spec.trustBundle == wanted[key]

    async def _wanted(self) -> Data:
        found = await find(self._client, ConfigMap, names.AUTHORITIES_MAP, self._namespace)
        return (found.data or {}) if found is not None else {}

    async def _needed(self) -> set[str]:
        """Where somebody verifies: here, wherever a pool's pods are, and wherever one asked for it."""
        needed = {self._namespace}
        async for namespace in self._client.list(
            Namespace, labels={names.WANTS_TRUST_LABEL: "true"}
        ):
            if namespace.metadata is not None and namespace.metadata.deletionTimestamp is None:
                needed.add(str(namespace.metadata.name))
        try:
            async for pool in self._client.list(_WorkerPool, namespace=ALL_NS):
                if pool.metadata is not None:
                    needed.add(str(pool.metadata.namespace))
        except httpx2.HTTPStatusError as e:
            if not is_missing(e):
                raise
        return needed

    async def _copies(self) -> dict[str, Data]:
        found: dict[str, Data] = {}
        # By name as well: no more may be asked for than this.
        async for each in self._client.list(
            ConfigMap,
            namespace=ALL_NS,
            labels={names.TRUST_LABEL: "true"},
            fields={"metadata.name": names.TRUST_MAP},
        ):
            if each.metadata is not None:
                found[str(each.metadata.namespace)] = each.data or {}
        return found

    async def _write(self, namespace: str, data: Data, *, known: bool) -> None:
        meta = ObjectMeta(
            name=names.TRUST_MAP,
            namespace=namespace,
            labels={**labels(), names.TRUST_LABEL: "true"},
        )
        copy = ConfigMap(metadata=meta, data=dict(data))
        try:
            await (self._client.replace(copy) if known else self._client.create(copy))
        except ApiError as e:
            if not (is_conflict(e) or is_missing(e) or e.status.code == 403):
                raise
            # Its namespace is going, or somebody keeps a map of this name: the others still get theirs.
            _log.warning(
                "cannot write a trust bundle",
                extra={"namespace": namespace, "map": names.TRUST_MAP, "error": str(e)},
            )

    async def _remove(self, namespace: str) -> None:
        try:
            await self._client.delete(ConfigMap, names.TRUST_MAP, namespace=namespace)
        except ApiError as e:
            if not is_missing(e):
                raise

    async def _cluster_bundle(self, name: str) -> ClusterTrustBundle | None:
        if not self._cluster_bundles:
            return None
        return await find(self._client, ClusterTrustBundle, names.cluster_bundle(name))

    async def _write_cluster_bundles(self, wanted: Data) -> bool:
        changed = False
        for name in names.ALL_AUTHORITIES if self._cluster_bundles else ():
            text = wanted.get(names.trust_key(name))
            if text is None:
                continue
            found = await self._cluster_bundle(name)
            if found is not None and found.spec.trustBundle == text:
                continue
            meta = ObjectMeta(name=names.cluster_bundle(name), labels=labels())
            spec = ClusterTrustBundleSpec(trustBundle=text, signerName=names.signer(name))
            if found is None or found.metadata is None:
                await self._client.create(ClusterTrustBundle(spec=spec, metadata=meta))
            else:
                meta.resourceVersion = found.metadata.resourceVersion
                await self._client.replace(ClusterTrustBundle(spec=spec, metadata=meta))
            changed = True
        return changed
