"""The credentials of a local system's processes: issued before they start, renewed while they run."""

from __future__ import annotations

import asyncio
import logging

from atenet.errors import AteError
from atenet.identity import spiffe
from atenet.identity.local import LocalIdentity
from atenet.local.layout import NODE, Layout
from atenet.local.processes import NAMESPACE, POOL, Credentials
from atenet.local.settings import LocalSettings

__all__ = ["issue", "renew_forever"]

log = logging.getLogger(__name__)

# Certificates live for hours; a look costs a few milliseconds.
_RENEW_SECONDS = 60.0


def issue(layout: Layout, settings: LocalSettings) -> Credentials:
    """Makes what is missing, renews what is due. Raises AteError naming a damaged file."""
    identity = LocalIdentity(layout.home)
    identity.ensure()
    identity.credential("cli", spiffe.CLI_ID)
    ca = layout.home / "ca"
    return Credentials(
        api_pod=identity.credential("ateapi", spiffe.API_ID),
        api_service=identity.service_credential(
            "ateapi", [spiffe.API_SERVER_NAME, settings.address]
        ),
        router_pod=identity.credential("router", spiffe.ROUTER_ID),
        router_service=identity.service_credential(
            "router", [spiffe.ROUTER_SERVER_NAME, settings.address]
        ),
        egress_pod=identity.credential("egress", spiffe.EGRESS_ID),
        egress_service=identity.service_credential(
            "egress", [spiffe.EGRESS_SERVER_NAME, settings.address]
        ),
        provider_service=identity.service_credential(
            "credentials", [spiffe.CREDENTIALS_SERVER_NAME, settings.address]
        ),
        atelet=identity.credential("atelet", spiffe.ATELET_ID, node=NODE),
        worker=identity.credential("worker", spiffe.pod_id(NAMESPACE, POOL)),
        pod_roots=identity.trust("pod-identity"),
        service_roots=identity.trust("service-dns"),
        actor_roots=identity.trust("actor-identity"),
        interception_roots=identity.trust("egress-mitm"),
        interception_ca=(ca / "egress-mitm.crt", ca / "egress-mitm.key"),
        actor_ca=(ca / "actor-identity.crt", ca / "actor-identity.key"),
    )


async def renew_forever(layout: Layout) -> None:
    """Renews what is due, again and again; processes re-read their files by themselves."""
    identity = LocalIdentity(layout.home)
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        try:
            renewed = await asyncio.to_thread(identity.renew_due)
        except (AteError, OSError) as error:
            log.error("cannot renew certificates", extra={"error": str(error)})
        else:
            for path in renewed:
                log.info("renewed", extra={"file": str(path.relative_to(layout.home))})
