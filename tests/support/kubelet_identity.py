"""A kubelet's part in identity: it asks for pods' certificates as its node, and keeps volumes as files, late."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from atenet.controller.signing import names
from atenet.identity import files, pem
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lightkube import AsyncClient
from lightkube.models.certificates_v1 import PodCertificateRequestSpec
from lightkube.models.meta_v1 import Condition, ObjectMeta
from lightkube.resources.certificates_v1 import PodCertificateRequest
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret, ServiceAccount


@dataclass
class Asker:
    """Asks as one node, or as whoever the client is; `changed` fields of a request are wrong on purpose."""

    client: AsyncClient
    admin: AsyncClient

    async def ask(
        self, authority: str, pod: str, namespace: str, **changed: object
    ) -> tuple[PodCertificateRequest, bytes]:
        """The open request, and the key's PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        der = csr.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        found = await self.admin.get(Pod, pod, namespace=namespace)
        account = await self.admin.get(
            ServiceAccount, found.spec.serviceAccountName, namespace=namespace
        )
        node = await self.admin.get(Node, found.spec.nodeName)
        spec = {
            "signerName": names.signer(authority),
            "podName": pod,
            "podUID": found.metadata.uid,
            "serviceAccountName": account.metadata.name,
            "serviceAccountUID": account.metadata.uid,
            "nodeName": node.metadata.name,
            "nodeUID": node.metadata.uid,
            "maxExpirationSeconds": 3600,
            "stubPKCS10Request": b64encode(der).decode(),
            **changed,
        }
        request = PodCertificateRequest(
            metadata=ObjectMeta(generateName="req-", namespace=namespace),
            spec=PodCertificateRequestSpec(**spec),
        )
        return await self.client.create(request), pem.key_pem(key)

    async def answer(self, request: PodCertificateRequest) -> PodCertificateRequest:
        """As soon as there is one."""
        async with asyncio.timeout(60):
            while True:
                found = await self.admin.get(
                    PodCertificateRequest,
                    request.metadata.name,
                    namespace=request.metadata.namespace,
                )
                if found.status is not None and found.status.conditions:
                    return found
                await asyncio.sleep(0.05)

    async def bundle(self, authority: str, pod: str, namespace: str) -> bytes:
        """Key and chain, as a projected volume has them."""
        request, key = await self.ask(authority, pod, namespace)
        answered = await self.answer(request)
        assert condition(answered).type == "Issued", condition(answered)
        return key + str(answered.status.certificateChain).encode()

    async def refusal(
        self, authority: str, pod: str, namespace: str, **changed: object
    ) -> Condition:
        request, _ = await self.ask(authority, pod, namespace, **changed)
        found = condition(await self.answer(request))
        assert found.type == "Denied", found
        return found


def condition(request: PodCertificateRequest) -> Condition:
    """The one that there is."""
    (found,) = request.status.conditions
    return found


@dataclass
class Volume:
    """A directory that follows what `read` says, `late` seconds behind: each file replaced by rename.

    `read`: file name -> content.
    """

    directory: Path
    read: Callable[[], Awaitable[dict[str, bytes]]]
    late: float = 0.0
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    async def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write(await self.read())
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        shutil.rmtree(self.directory)

    def __truediv__(self, name: str) -> Path:
        return self.directory / name

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            content = await self.read()
            loop.call_later(self.late, self._write, content)
            await asyncio.sleep(0.1)

    def _write(self, content: dict[str, bytes]) -> None:
        for name, text in content.items():
            path = self.directory / name
            if self.directory.exists() and (not path.exists() or path.read_bytes() != text):
                files.write_private(path, text)


def config_map(
    client: AsyncClient, name: str, namespace: str
) -> Callable[[], Awaitable[dict[str, bytes]]]:
    """What a volume of it has."""

    async def read() -> dict[str, bytes]:
        found = await client.get(ConfigMap, name, namespace=namespace)
        return {key: text.encode() for key, text in (found.data or {}).items()}

    return read


def secret(
    client: AsyncClient, name: str, namespace: str
) -> Callable[[], Awaitable[dict[str, bytes]]]:
    """What a volume of it has."""

    async def read() -> dict[str, bytes]:
        found = await client.get(Secret, name, namespace=namespace)
        return {key: b64decode(text) for key, text in (found.data or {}).items()}

    return read
