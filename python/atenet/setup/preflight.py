"""What must be there before anything is applied: asked of the cluster, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from atenet.errors import AteError
from atenet.setup.api import Api
from atenet.setup.config import Config
from atenet.setup.kinds import Reference
from atenet.setup.objects import Cluster
from atenet.setup.objects.names import NAMESPACE, Object, metadata

__all__ = ["check_secrets", "database_secret", "discover", "missing_namespaces"]


def discover(api: Api, config: Config) -> Cluster:
    """What the objects depend on. Raises AteError: it cannot be as it was asked for."""
    served = config.pod_certificates == "on" or (
        config.pod_certificates == "auto" and _serves_pod_certificates(api)
    )
    if config.pod_certificates == "on" and not _serves_pod_certificates(api):
        raise AteError(
            "--pod-certificates=on: this cluster serves no PodCertificateRequest (certificates.k8s.io/v1)",
            hint="it is part of Kubernetes 1.37; off keeps certificates in Secrets",
        )
    return Cluster(pod_certificates=served)


def _serves_pod_certificates(api: Api) -> bool:
    return api.list("PodCertificateRequest", namespace=NAMESPACE) is not None


def check_secrets(api: Api, config: Config, *, database_url_file: Path | None) -> None:
    """Secrets that the configuration names and others make. Raises AteError naming all that are missing."""
    missing = list(_missing(api, config, database_url_file))
    if missing:
        raise AteError(
            "\n".join(text for text, _ in missing), hint="; ".join(hint for _, hint in missing)
        )


def _missing(api: Api, config: Config, database_url_file: Path | None) -> Iterator[tuple[str, str]]:
    if database_url_file is None:
        yield from _lacking(
            api,
            "--database-url-secret",
            config.database_url_secret,
            ["url"],
            "give --database-url-file FILE, or make it: "
            f"kubectl create namespace {NAMESPACE}; kubectl -n {NAMESPACE} create secret generic "
            f"{config.database_url_secret} --from-file=url=FILE, where FILE holds postgresql://user:password@host/database",
        )
    yield from dict(missing_namespaces(api, config)).values()
    if config.snapshots_secret:
        keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
        yield from _lacking(
            api,
            "--snapshots-secret",
            config.snapshots_secret,
            keys,
            f"kubectl -n {NAMESPACE} create secret generic {config.snapshots_secret} --from-env-file=FILE",
        )
    if config.token_keys_secret:
        yield from _lacking(
            api,
            "--token-keys-secret",
            config.token_keys_secret,
            ["seal"],
            f"openssl rand -base64 48 > seal; kubectl -n {NAMESPACE} create secret generic "
            f"{config.token_keys_secret} --from-file=seal",
        )


def missing_namespaces(api: Api, config: Config) -> Iterator[tuple[str, tuple[str, str]]]:
    """Namespaces of others that the configuration names and that are not there, each with problem and hint."""
    for namespace in config.credential_namespaces:
        if api.get(Reference("Namespace", namespace)) is None:
            problem = f"--credential-allow: there is no namespace {namespace}"
            hint = f"kubectl create namespace {namespace}, or take it out of the list"
            yield namespace, (problem, hint)


def _lacking(
    api: Api, flag: str, name: str, keys: list[str], hint: str
) -> Iterator[tuple[str, str]]:
    which = Reference("Secret", name, NAMESPACE)
    found = api.get(which)
    if found is None:
        yield f"{flag}: there is no {which}", hint
        return
    lacking = [key for key in keys if key not in (found.get("data") or {})]
    if lacking:
        yield f"{flag}: {which} has no key {', '.join(lacking)}", hint


def database_secret(config: Config, file: Path) -> Object:
    """The Secret with what a file says. Raises AteError."""
    try:
        url = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AteError(f"--database-url-file: cannot read {file}") from error
    if not url.startswith(("postgresql://", "postgres://")):
        raise AteError(
            f"--database-url-file: {file} holds no postgresql:// URL",
            hint="the form is postgresql://user:password@host/database",
        )
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(config.database_url_secret),
        "type": "Opaque",
        "stringData": {"url": url},
    }
