"""Images as other tools write them, from layers given as name -> content."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Entry = bytes | tuple[str, str] | Callable[[tarfile.TarInfo], None]


def layer(entries: Mapping[str, Entry], *, compressed: bool = False) -> bytes:
    """bytes: a file (executable); ("symlink"|"hardlink", target): a link; else it edits the header."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, entry in entries.items():
            header = tarfile.TarInfo(name)
            header.mode = 0o755
            content = b""
            if isinstance(entry, bytes):
                content = entry
                header.size = len(entry)
            elif isinstance(entry, tuple):
                header.type = tarfile.SYMTYPE if entry[0] == "symlink" else tarfile.LNKTYPE
                header.linkname = entry[1]
            else:
                entry(header)
            tar.addfile(header, io.BytesIO(content))
    made = buffer.getvalue()
    return gzip.compress(made) if compressed else made


def oci_archive(path: Path, config: Mapping[str, Any], *layers: bytes) -> Path:
    blobs: dict[str, bytes] = {}

    def blob(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}", "size": len(content)}

    manifest = {
        "config": blob(json.dumps({"config": dict(config)}).encode()),
        "layers": [blob(each) for each in layers],
    }
    index = {"manifests": [blob(json.dumps(manifest).encode())]}
    files = {
        "oci-layout": b"{}",
        "index.json": json.dumps(index).encode(),
        **blobs,
    }
    path.write_bytes(layer(files))
    return path


def docker_archive(path: Path, config: Mapping[str, Any], *layers: bytes) -> Path:
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    files = {
        "manifest.json": json.dumps([{"Config": "config.json", "Layers": names}]).encode(),
        "config.json": json.dumps({"config": dict(config)}).encode(),
        **dict(zip(names, layers, strict=True)),
    }
    path.write_bytes(layer(files))
    return path
