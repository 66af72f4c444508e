"""What actors trust: public roots and the interception authority in one bundle, mounted read-only."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from atenet.errors import AteError
from atenet.identity import pem
from atenet.worker.sandbox import Bind, Common

__all__ = ["BUNDLE", "INTERCEPTION", "MOUNT", "VARIABLES", "SandboxTrust"]

_log = logging.getLogger(__name__)
# How soon a changed authority reaches running actors; authorities overlap for much longer.
_LOOK_SECONDS = 5.0

MOUNT = "/etc/ate/trust"
BUNDLE = f"{MOUNT}/ca-bundle.crt"
INTERCEPTION = f"{MOUNT}/interception.crt"

# Each names a file of authorities to some program or library. Those of the second group add to what the
# program brings itself, so they get the interception authority alone.
VARIABLES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "AWS_CA_BUNDLE",
            "BUNDLE_SSL_CA_CERT",
            "CARGO_HTTP_CAINFO",
            "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
            "COMPOSER_CAFILE",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
            "HTTPLIB2_CA_CERTS",
            "JULIA_SSL_CA_ROOTS_PATH",
            "NIX_SSL_CERT_FILE",
            "PERL_LWP_SSL_CA_FILE",
            "PIP_CERT",
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_FILE",
        ),
        BUNDLE,
    ),
    **dict.fromkeys(("DENO_CERT", "NODE_EXTRA_CA_CERTS"), INTERCEPTION),
}

_Stamp = tuple[tuple[int, int, int], ...]


@dataclass
class SandboxTrust:
    """Files in `directory`, made from `interception` and `public`; written anew when one of those changes."""

    directory: Path
    interception: Path
    public: Path
    _written: _Stamp | None = None

    @property
    def common(self) -> Common:
        """For every container. The directory is mounted, not its files: what is replaced in it is seen inside."""
        return Common(VARIABLES, (Bind(self.directory, MOUNT, read_only=True),))

    def write(self) -> bool:
        """Writes the files if what they are made from has changed. Raises AteError naming a bad file. Blocks."""
        stamp = self._look()
        if stamp == self._written:
            return False
        ours = pem.parse_certificates(_read(self.interception), self.interception)
        theirs = _read(self.public)
        pem.parse_certificates(theirs, self.public)
        self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        own = pem.certificate_pem(*ours)
        _replace(self.directory / Path(INTERCEPTION).name, own)
        _replace(self.directory / Path(BUNDLE).name, own + theirs)
        self._written = stamp
        return True

    async def follow(self) -> None:
        """Writes again whenever an authority changes. A bad file keeps the last good bundle. Never returns."""
        said = ""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                if await asyncio.to_thread(self.write):
                    _log.info("the bundle that actors trust was written anew")
                said = ""
            except (AteError, OSError) as error:
                if str(error) != said:
                    _log.error("keeping the bundle that actors trust", extra={"error": str(error)})
                said = str(error)

    def _look(self) -> _Stamp:
        found = [_stat(path) for path in (self.interception, self.public)]
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise AteError(f"cannot read {path}: {error.strerror}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AteError(f"cannot read {path}: {error.strerror}") from error


def _replace(path: Path, content: bytes) -> None:
    """Whole or not at all, for everybody to read."""
    scratch = path.with_name(f".{path.name}")
    scratch.write_bytes(content)
    scratch.chmod(0o644)
    scratch.rename(path)
