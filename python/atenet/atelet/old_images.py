"""Removes the image versions of this node that nothing can start or wake on any more."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from atenet.atelet.parts import Parts
from atenet.gvisor import MemoryNeeds
from atenet.gvisor.needs import version_in
from atenet.images import ImageStore

__all__ = ["collect_images"]

_log = logging.getLogger(__name__)


def collect_images(images: Path | None, parts: Parts) -> None:
    """Those that no name leads to, no actor runs on, and no snapshot names: stored, paused or golden.

    Blocks; reads the manifests of the store only when there is a version without a name. Raises
    OSError, and then nothing is removed.
    """
    if images is None:
        return

    def used() -> set[str]:
        stored = parts.snapshots.needs()
        return _versions([*parts.golden.needs(), *parts.local.needs(), *stored])

    for version in ImageStore(images).collect(used):
        _log.info("removed an old image version", extra={"version": version[:12]})


def _versions(needs: Iterable[MemoryNeeds]) -> set[str]:
    found = (version_in(root) for each in needs for root in each.roots.values())
    return {version for version in found if version is not None}
