"""An installation's accounts, nodes and pods as objects, and ate-controller's identity loops beside them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from atenet.controller.signing.authorities import ensure_authorities
from atenet.controller.signing.run import run_signing
from atenet.controller.signing.settings import SigningSettings
from lightkube import ApiError, AsyncClient
from lightkube.models.core_v1 import (
    Container,
    PodCertificateProjection,
    PodSpec,
    ProjectedVolumeSource,
    SecretVolumeSource,
    VolumeProjection,
)
from lightkube.models.core_v1 import Volume as PodVolume
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Node, Pod, ServiceAccount

SYSTEM = "ate-system"
WORKERS = "team-a"
NODES = ("node-1", "ip-10-0-0-2.example.internal")
ACCOUNTS = (
    *("ate-api-server", "ate-controller", "atelet"),
    *("atenet-router", "atenet-egress", "ate-credentials"),
)


async def prepare(client: AsyncClient) -> None:
    """Namespaces, accounts, nodes and authorities. Safe to run again."""
    marks = {"ate.dev/trust": "true", "ate.dev/workers": "true"}
    for name, labels in ((SYSTEM, {}), (WORKERS, marks), ("bystander", {})):
        await _create(client, Namespace(metadata=ObjectMeta(name=name, labels=labels)))
    accounts = [(SYSTEM, each) for each in ACCOUNTS]
    for namespace, name in [*accounts, (WORKERS, "pool"), ("bystander", "default")]:
        meta = ObjectMeta(name=name, namespace=namespace)
        await _create(client, ServiceAccount(metadata=meta))
    for name in NODES:
        await _create(client, Node(metadata=ObjectMeta(name=name)))
    await ensure_authorities(client, SYSTEM)


async def make_pod(
    client: AsyncClient,
    name: str,
    account: str,
    *,
    namespace: str = SYSTEM,
    node: str = NODES[0],
    pool: str | None = None,
    secret: str | None = None,
    signers: Sequence[str] = (),
) -> Pod:
    """On its node already. `pool`: one of its worker pods; `secret`, `signers`: what it mounts."""
    volumes = [_certificate(each) for each in signers]
    if secret:
        volumes.append(PodVolume(name="identity", secret=SecretVolumeSource(secretName=secret)))
    made = await client.create(
        Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                labels={"ate.dev/workerpool": pool} if pool else {},
            ),
            spec=PodSpec(
                containers=[Container(name="main", image="example.invalid/image")],
                serviceAccountName=account,
                automountServiceAccountToken=False,
                nodeName=node,
                volumes=volumes,
            ),
        )
    )
    assert isinstance(made, Pod)
    return made


@contextlib.asynccontextmanager
async def signing(
    client: AsyncClient, *, pod_certificates: bool = True, own_credential: Path | None = None
) -> AsyncIterator[None]:
    """ate-controller's part in identity, while the block lasts."""
    stop = asyncio.Event()
    settings = SigningSettings(pod_certificates=pod_certificates, own_credential=own_credential)
    task = asyncio.create_task(run_signing(client, settings, stop))
    try:
        yield
    finally:
        stop.set()
        await task


def _certificate(signer: str) -> PodVolume:
    projection = PodCertificateProjection(
        signerName=signer, keyType="ECDSAP256", credentialBundlePath="credential-bundle.pem"
    )
    sources = [VolumeProjection(podCertificate=projection)]
    name = signer.replace(".", "-").replace("/", "-")
    return PodVolume(name=name, projected=ProjectedVolumeSource(sources=sources))


async def _create(client: AsyncClient, thing: object) -> None:
    try:
        await client.create(thing)  # type: ignore[call-overload]
    except ApiError as e:
        if e.status.code != 409:
            raise
