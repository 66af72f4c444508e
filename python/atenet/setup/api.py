"""The API server, object by object, as plain dicts; what it refuses is told with object, reason and hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Self

import httpx2
from lightkube import ApiError, Client
from lightkube.core.generic_client import ALL_NS
from lightkube.generic_resource import (
    GenericGlobalResource,
    GenericNamespacedResource,
    create_api_info,
)
from lightkube.types import CascadeType, PatchType

from atenet.errors import AteError
from atenet.setup.cluster import Cluster, unreachable
from atenet.setup.kinds import Reference, kind_of, reference
from atenet.setup.objects.names import FIELD_MANAGER, Object
from atenet.setup.refusals import refusal

__all__ = ["Api"]


class Api:
    """Calls of one command. `server`: for messages."""

    def __init__(self, client: Client, server: str) -> None:
        self._client = client
        self.server = server

    @classmethod
    def to(cls, cluster: Cluster) -> Api:
        """Raises AteError: no usable kubeconfig."""
        return cls(cluster.client(), cluster.server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def apply(self, made: Object, *, dry_run: bool = False, force: bool = False) -> Object:
        """Server-side apply. Raises AteError naming the object."""
        which = reference(made)

        def send() -> Any:
            return self._client.patch(
                _resource(which.kind),
                which.name,
                made,
                namespace=which.namespace or None,
                patch_type=PatchType.APPLY,
                field_manager=FIELD_MANAGER,
                force=force,
                dry_run=dry_run,
            )

        return _plain(self._told(which, send))

    def create(self, made: Object) -> bool:
        """False: it is there already. Raises AteError naming the object."""
        which = reference(made)
        built = _resource(which.kind)(made)
        try:
            self._call(which, lambda: self._client.create(built, namespace=which.namespace or None))
        except ApiError as error:
            if error.status.code == 409:
                return False
            raise refusal(which, error) from error
        return True

    def get(self, which: Reference) -> Object | None:
        """None: there is none, or none of its kind. Raises AteError."""
        try:
            found = self._call(
                which,
                lambda: self._client.get(
                    _resource(which.kind), which.name, namespace=which.namespace or None
                ),
            )
        except _NotServed:
            return None
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise refusal(which, error) from error
        return _plain(found)

    def list(
        self, kind: str, *, namespace: str = "", labels: dict[str, str] | None = None
    ) -> list[Object] | None:
        """Of all namespaces unless one is named. None: the cluster has no such kind. Raises AteError."""
        which = Reference(kind, "*", namespace)
        scope = namespace or (ALL_NS if kind_of(kind).namespaced else None)
        try:
            found: list[Object] = self._call(
                which,
                lambda: [
                    {**_plain(each), "kind": kind}
                    for each in self._client.list(
                        _resource(kind), namespace=scope, labels=dict(labels or {})
                    )
                ],
            )
            return found
        except _NotServed:
            return None
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise refusal(which, error) from error

    def delete(self, which: Reference) -> bool:
        """And what belongs to it, in the background. False: there was none. Raises AteError."""
        try:
            self._call(
                which,
                lambda: self._client.delete(
                    _resource(which.kind),
                    which.name,
                    namespace=which.namespace or None,
                    cascade=CascadeType.BACKGROUND,
                ),
            )
        except _NotServed:
            return False
        except ApiError as error:
            if error.status.code == 404:
                return False
            raise refusal(which, error) from error
        return True

    def release(self, which: Reference) -> None:
        """Takes all finalizers off. Raises AteError."""
        nothing = {"metadata": {"finalizers": None}}
        self._told(
            which,
            lambda: self._client.patch(
                _resource(which.kind),
                which.name,
                nothing,
                namespace=which.namespace or None,
                patch_type=PatchType.MERGE,
            ),
        )

    def _told(self, which: Reference, send: Callable[[], Any]) -> Any:
        try:
            return self._call(which, send)
        except ApiError as error:
            raise refusal(which, error) from error

    def _call(self, which: Reference, send: Callable[[], Any]) -> Any:
        try:
            return send()
        except ApiError:
            raise
        except httpx2.HTTPStatusError as error:
            if error.response.status_code == 404:
                # Not an answer about an object: there is no such kind.
                raise _NotServed(f"{which}: the cluster does not know this kind") from error
            raise AteError(
                f"{which}: {self.server} answered {error.response.status_code}",
                hint="is this a Kubernetes API server?",
            ) from error
        except httpx2.HTTPError as error:
            raise unreachable(self.server, error) from error


class _NotServed(AteError):
    """The cluster has no such kind."""


@cache
def _resource(kind: str) -> Any:
    """lightkube's typed classes know the fields of one version of Kubernetes; these take what there is."""
    known = kind_of(kind)
    group, _, version = known.api.rpartition("/")
    base = GenericNamespacedResource if known.namespaced else GenericGlobalResource
    info = create_api_info(group, version, kind, known.plural)
    return type(kind, (base,), {"_api_info": info})


def _plain(found: Any) -> Object:
    return dict(found)


def owned(objects: list[Object], owner: Object) -> Iterator[Object]:
    """Those that this one made."""
    uid = owner["metadata"]["uid"]
    for each in objects:
        if any(by["uid"] == uid for by in each["metadata"].get("ownerReferences", [])):
            yield each
