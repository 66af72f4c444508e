"""The credential provider as a process."""

from __future__ import annotations

import os

from atenet.credentials.kubernetes import KubernetesSecrets, allow_list, check_server
from atenet.credentials.secrets import Secrets
from atenet.credentials.service import CredentialService
from atenet.credentials.settings import CredentialsSettings
from atenet.daemon import Stop, announce_ready
from atenet.errors import AteError
from atenet.proto import credprovider_pb2_grpc
from atenet.rpc import mtls_server

__all__ = ["serve"]

_GRACE_SECONDS = 2.0


async def serve(settings: CredentialsSettings, stop: Stop) -> None:
    """Serves until `stop`. Raises AteError that names the flag."""
    if settings.directory is None and settings.environment is None and settings.kubernetes is None:
        hint = "give one of --directory, --environment and --kubernetes"
        raise AteError("there is nothing to serve", hint=hint)
    if settings.directory is not None and not settings.directory.is_dir():
        raise AteError(f"--directory {settings.directory}: is no directory")
    kubernetes = _kubernetes(settings)
    secrets = Secrets(settings.directory, settings.environment, os.environ, kubernetes)
    service = CredentialService(
        secrets, caller=settings.caller, provider_class=settings.provider_class
    )
    served = mtls_server(
        settings.listen, credential=settings.credential, client_roots=settings.trust
    )
    credprovider_pb2_grpc.add_CredentialProviderServicer_to_server(service, served.server)
    await served.server.start()
    try:
        announce_ready(settings.ready_file, {"grpc": served.address})
        await stop.wait()
    finally:
        await served.server.stop(_GRACE_SECONDS)


def _kubernetes(settings: CredentialsSettings) -> KubernetesSecrets | None:
    allowed = allow_list(settings.allow)
    if settings.kubernetes is None:
        return None
    for flag, file in (("token", settings.kubernetes_token), ("ca", settings.kubernetes_ca)):
        if not file.is_file():
            raise AteError(f"--kubernetes-{flag} {file}: is no file")
    server = check_server(settings.kubernetes)
    return KubernetesSecrets(server, settings.kubernetes_token, settings.kubernetes_ca, allowed)
