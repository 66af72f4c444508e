"""Identity with no more rights than `ate-setup install` gives ate-controller."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest
from atenet.controller.signing import names
from atenet.controller.signing.cluster import find
from atenet.controller.signing.rotate import rotate
from atenet.controller.signing.rotation import Pace, Stage
from lightkube import ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, Secret, ServiceAccount

from tests.kubernetes.setup_command import Setup
from tests.support.eventually import eventually
from tests.support.kube_cluster import KubeCluster
from tests.support.kube_identity import NODES, SYSTEM, make_pod, signing
from tests.support.kubelet_identity import Asker

WORKERS = "ate-workers"
_SHORT = timedelta(seconds=1)


async def installed(kube: KubeCluster, directory: Path) -> tuple[AsyncClient, AsyncClient]:
    """The administrator, and ate-controller's account."""
    await Setup(kube, directory).install()
    admin = kube.async_client()
    await admin.create(Node(metadata=ObjectMeta(name=NODES[0])))
    await admin.create(ServiceAccount(metadata=ObjectMeta(name="pool", namespace=WORKERS)))
    kubeconfig = kube.service_account_kubeconfig(SYSTEM, "ate-controller")
    return admin, kube.async_client(kubeconfig)


def refused(caplog: pytest.LogCaptureFixture) -> list[str]:
    errors = [str(getattr(each, "error", "")) for each in caplog.records]
    return [each for each in errors if "forbidden" in each.lower() or "403" in each]


async def test_with_pod_certificates(
    kube: KubeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    admin, controller = await installed(kube, tmp_path)
    caplog.set_level(logging.INFO)
    async with admin, controller, signing(controller, own_credential=tmp_path / "own.pem"):
        signers = (names.signer(names.POD_IDENTITY),)
        await make_pod(admin, "pool-1", "pool", namespace=WORKERS, signers=signers)
        asker = Asker(admin, admin)
        assert await asker.bundle(names.POD_IDENTITY, "pool-1", WORKERS)

        async def trusted() -> bool:
            return await find(admin, ConfigMap, names.TRUST_MAP, WORKERS) is not None

        await eventually(trusted)
        await eventually((tmp_path / "own.pem").exists)
    assert refused(caplog) == []


async def test_with_secrets(
    old_kube: KubeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    admin, controller = await installed(old_kube, tmp_path)
    caplog.set_level(logging.INFO)
    async with admin, controller, signing(controller, pod_certificates=False):
        secret = "ate-identity-pool-1"
        await make_pod(admin, "pool-1", "pool", namespace=WORKERS, pool="pool", secret=secret)

        async def there() -> bool:
            found = [
                await find(admin, Secret, name, namespace)
                for name, namespace in ((secret, WORKERS), ("ate-serving-api", SYSTEM))
            ]
            return all(each is not None for each in found)

        await eventually(there)
    assert refused(caplog) == []


async def test_it_may_rotate_what_it_signs_with_and_nothing_else(
    kube: KubeCluster, tmp_path: Path
) -> None:
    """After the first test: installed already."""
    setup = Setup(kube, tmp_path)
    await setup.install()
    kubeconfig = kube.service_account_kubeconfig(SYSTEM, "ate-controller")
    pace = Pace(*[_SHORT] * 2)
    async with kube.async_client(kubeconfig) as controller, signing(controller):
        over = await rotate(controller, names.SERVICE_DNS, pace=pace, every=0.2)
        assert over.stage is Stage.REST
        for name in (names.ACTOR_IDENTITY, names.INTERCEPTION):
            with pytest.raises(ApiError, match="forbidden"):
                await rotate(controller, name, pace=pace)
