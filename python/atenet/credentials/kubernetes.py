"""Secrets of a Kubernetes cluster, for atespaces that were given their namespace: everything else is denied."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from atenet.credentials.failure import Denied, NotThere, Unavailable
from atenet.errors import AteError

__all__ = ["KubernetesSecrets", "allow_list", "check_server"]

_LIMIT_SECONDS = 5.0
# A Secret is at most 1 MiB, in base64 and JSON.
_MAX_ANSWER = 2 * 1024 * 1024


@dataclass(frozen=True)
class KubernetesSecrets:
    """`allowed`: which namespaces each atespace may read. Files are read anew for each secret: tokens rotate."""

    server: str
    token: Path
    ca: Path
    allowed: Mapping[str, frozenset[str]]

    def read(self, atespace: str, tail: Sequence[str]) -> bytes:
        """The value of `<namespace>/<secret>/<key>`. Raises SecretsError."""
        if len(tail) != 3:
            raise NotThere("a secret is named by <namespace>/<secret>/<key>")
        namespace, name, key = tail
        if namespace not in self.allowed.get(atespace, frozenset()):
            raise Denied("the atespace was not given that namespace")
        found = self._get(f"/api/v1/namespaces/{quote(namespace, '')}/secrets/{quote(name, '')}")
        value = (found.get("data") or {}).get(key)
        if value is None:
            raise NotThere("the secret has no such key")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise Unavailable("the API server's answer cannot be read") from error

    def _get(self, path: str) -> dict[str, Any]:
        parts = urlsplit(self.server)
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
            headers = {"authorization": f"Bearer {self.token.read_text().strip()}"}
            # Redirects are not followed: the token is for this server alone.
            connection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port or 443, timeout=_LIMIT_SECONDS, context=context
            )
            try:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                body = answer.read(_MAX_ANSWER)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable("the API server cannot be asked") from error
        return _object(answer.status, body)


def _object(status: int, body: bytes) -> dict[str, Any]:
    if status == http.client.NOT_FOUND:
        raise NotThere("there is no such secret")
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        raise Denied("the API server does not let this provider read it")
    if status != http.client.OK:
        raise Unavailable(f"the API server answered {status}")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable("the API server's answer cannot be read")
    return found


def allow_list(entries: Sequence[str]) -> dict[str, frozenset[str]]:
    """`ATESPACE=NAMESPACE` entries by atespace. Raises AteError naming the flag."""
    found: dict[str, frozenset[str]] = {}
    for entry in entries:
        atespace, equals, namespace = entry.partition("=")
        if not (equals and atespace and namespace) or "*" in entry:
            raise AteError(
                f"--allow {entry!r}: must be ATESPACE=NAMESPACE", hint="repeat the flag for more"
            )
        found[atespace] = found.get(atespace, frozenset()) | {namespace}
    return found


def check_server(server: str) -> str:
    """The URL as it is. Raises AteError naming the flag for one that is not `https://host[:port]`."""
    parts = urlsplit(server)
    try:
        fits = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or parts.path.strip("/") or parts.query or parts.username:
        raise AteError(f"--kubernetes {server!r}: must be https://host:port")
    return server
