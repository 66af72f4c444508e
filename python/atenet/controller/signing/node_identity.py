"""An agent's end where there are no pod certificates: its key, its request, its file, before each runs out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lightkube import AsyncClient
from lightkube.models.certificates_v1 import CertificateSigningRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.certificates_v1 import CertificateSigningRequest

from atenet.controller.backoff import Backoff
from atenet.controller.signing import names
from atenet.controller.signing.cluster import UNREACHABLE, find, labels
from atenet.errors import AteError
from atenet.identity import files, pem
from atenet.identity.credential import Credential
from atenet.identity.renewal import leaf_due

__all__ = ["keep_node_identity", "request_identity"]

_log = logging.getLogger(__name__)

_USAGES = ["digital signature", "client auth", "server auth"]
_LOOK_AGAIN = 0.5
_ANSWER_SECONDS = 60.0
_FIRST_RETRY, _CHECK_SECONDS = 1.0, 30.0


async def keep_node_identity(
    client: AsyncClient,
    file: Path,
    stop: asyncio.Event,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Keeps `file` a credential that is good for a third of its life yet, until `stop`."""
    backoff = Backoff(_FIRST_RETRY, _CHECK_SECONDS)
    while not stop.is_set():
        pause = _CHECK_SECONDS
        if _due(file, clock()):
            problem = None
            try:
                files.write_private(file, await request_identity(client))
                backoff.reset()
                _log.info("certificate renewed", extra={"file": str(file)})
            except (AteError, *UNREACHABLE) as error:
                problem = str(error)
            if _due(file, clock()):
                pause = backoff.wait()
            if problem is not None:
                extra = {"error": problem, "retry_s": round(pause, 2)}
                _log.warning("no certificate yet", extra=extra)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stop.wait()


async def request_identity(client: AsyncClient) -> bytes:
    """A new key and its certificate. Raises AteError when denied, or one of UNREACHABLE."""
    key = ec.generate_private_key(ec.SECP256R1())
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    request = csr.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    made = await client.create(
        CertificateSigningRequest(
            metadata=ObjectMeta(generateName="atelet-", labels=labels()),
            spec=CertificateSigningRequestSpec(
                request=b64encode(request).decode(),
                signerName=names.signer(names.POD_IDENTITY),
                usages=_USAGES,
            ),
        )
    )
    name = str(made.metadata.name) if made.metadata is not None else ""
    async with asyncio.timeout(_ANSWER_SECONDS):
        while (chain := await _answer(client, name)) is None:  # noqa: ASYNC110 - another process answers
            await asyncio.sleep(_LOOK_AGAIN)
    return pem.key_pem(key) + chain


async def _answer(client: AsyncClient, name: str) -> bytes | None:
    found = await find(client, CertificateSigningRequest, name)
    if found is None:
        raise AteError(f"CertificateSigningRequest {name} is gone without an answer")
    status = found.status
    for condition in (status.conditions if status is not None else None) or []:
        if condition.type in ("Denied", "Failed"):
            raise AteError(
                f"no certificate for this node's agent: {condition.reason}: {condition.message}"
            )
    return b64decode(status.certificate) if status is not None and status.certificate else None


def _due(file: Path, now: datetime) -> bool:
    if not file.exists():
        return True
    try:
        leaf = Credential.load(file).leaf
    except AteError:
        return True
    return leaf_due(leaf.not_valid_before_utc, leaf.not_valid_after_utc, now)
