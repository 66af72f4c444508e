"""Images as containerd imports them: OCI archives of layers that are files. Nothing is held in memory."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


class Blobs:
    """Writes one archive that holds many images; a layer that several have is in it once."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w")  # noqa: SIM115 - closed by `close`
        self._there: set[str] = set()
        self._index: list[dict[str, Any]] = []

    def image(self, name: str, config: Mapping[str, Any], layers: Sequence[Path]) -> None:
        """`config`: as in an image's own: User, Env, Entrypoint."""
        placed = [self._file(each) for each in layers]
        content = {
            "architecture": "amd64",
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [each["digest"] for each in placed]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, **self._json(content)},
            "layers": [{"mediaType": _LAYER, **each} for each in placed],
        }
        named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        self._index.append({"mediaType": _MANIFEST, **self._json(manifest), "annotations": named})

    def close(self) -> None:
        index = {"schemaVersion": 2, "manifests": self._index}
        self._add("index.json", json.dumps(index).encode())
        self._add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        self._tar.close()

    def _file(self, path: Path) -> dict[str, Any]:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest not in self._there:
                self._there.add(digest)
                file.seek(0)
                header = tarfile.TarInfo(f"blobs/sha256/{digest}")
                header.size = path.stat().st_size
                self._tar.addfile(header, file)
        return {"digest": f"sha256:{digest}", "size": path.stat().st_size}

    def _json(self, content: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._there:
            self._there.add(digest)
            self._add(f"blobs/sha256/{digest}", data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def _add(self, name: str, data: bytes) -> None:
        header = tarfile.TarInfo(name)
        header.size = len(data)
        self._tar.addfile(header, io.BytesIO(data))
