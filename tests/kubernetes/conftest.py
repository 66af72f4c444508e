"""One real API server for each file that asks for it: starting one takes seconds."""

from collections.abc import AsyncIterator, Iterator

import pytest
from atenet.controller.definition import crd
from lightkube import AsyncClient, Client

from tests.support.kube_cluster import KubeCluster, kube_cluster, without_pod_certificates


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeCluster]:
    """etcd and the API server alone; a test may start the others."""
    with kube_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def old_kube() -> Iterator[KubeCluster]:
    """The same without certificate requests of pods and without trust bundles."""
    with kube_cluster(features=without_pod_certificates()) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(kube: KubeCluster) -> Client:
    return kube.client()


@pytest.fixture
async def async_admin(kube: KubeCluster) -> AsyncIterator[AsyncClient]:
    client = kube.async_client()
    yield client
    await client.close()


@pytest.fixture(scope="module")
def kube_with_pools(kube: KubeCluster) -> KubeCluster:
    """It knows WorkerPools."""
    kube.define(crd())
    return kube
