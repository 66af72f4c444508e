"""The images of deploy/images, put together from a Debian and this tree, as one archive for containerd.

No registry is needed, and no builder. What the Containerfiles say of accounts and entry points is
read from them; the engine is this tree's own build.
"""

from __future__ import annotations

import re
from pathlib import Path

from atenet.router.binary import find_envoy

from tests.real_node import trees
from tests.real_node.archive import Blobs

REGISTRY, TAG = "node.invalid/atenet", "here"
PAUSE = "node.invalid/pause:1"
_PATH = "PATH=/opt/atenet/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASE_USER = "65532:65532"
# Where an image has it.
RUNSC = "usr/local/bin/runsc"


_FILES = sorted((trees.ROOT / "deploy" / "images").glob("*.Containerfile"))
NAMES = tuple(file.name.removesuffix(".Containerfile") for file in _FILES)


def reference(name: str) -> str:
    """What one of them is called on the node."""
    return f"{REGISTRY}/{name}:{TAG}"


def fetch() -> None:
    """What comes from elsewhere, and is kept: inside its namespaces the check has no network. Raises RuntimeError."""
    trees.debian(trees.PLAIN)
    trees.debian(trees.WORKER)
    trees.packages()


def archive(directory: Path, runsc: Path) -> Path:
    """All of them, of what `fetch` has kept, as GVISOR=yes makes them."""
    blobs = Blobs(target := directory / "images.tar")
    plain, worker = trees.debian(trees.PLAIN), trees.debian(trees.WORKER)
    common = [trees.packages(), trees.own(directory)]
    envoy = trees.one_file(directory, Path(find_envoy(None)), "usr/local/bin/envoy")
    gvisor = trees.one_file(directory, runsc, RUNSC)
    for file, name in zip(_FILES, NAMES, strict=True):
        layers = [worker if name == "ateworker" else plain, *common]
        layers += [envoy] * (name == "atenet") + [gvisor] * has_runsc(file)
        blobs.image(reference(name), _config(file), layers)
    blobs.close()
    return target


def pause(directory: Path) -> Path:
    """The one that holds pods."""
    blobs = Blobs(target := directory / "pause-image.tar")
    blobs.image(PAUSE, {"Entrypoint": ["/pause"]}, [trees.pause(directory)])
    blobs.close()
    return target


def has_runsc(file: Path) -> bool:
    """Whether GVISOR=yes puts it there."""
    return f" /runsc /{RUNSC}\n" in file.read_text()


def _config(file: Path) -> dict[str, object]:
    text = file.read_text()
    users = re.findall(r"^USER (\S+)", text, re.MULTILINE)
    points = re.findall(r'^ENTRYPOINT \["(\S+)"\]', text, re.MULTILINE)
    return {
        "User": users[-1] if users else _BASE_USER,
        "Env": [_PATH, "PYTHONUNBUFFERED=1"],
        **({"Entrypoint": points} if points else {}),
    }
