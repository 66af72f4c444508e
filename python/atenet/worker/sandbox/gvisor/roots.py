"""Which root file system each container of an activation gets: the newest at a first start, and the
very one that its memory is of when it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from atenet.errors import AteError
from atenet.gvisor.needs import host_root, image_root, version_in
from atenet.images import Image, ImageStore
from atenet.proto import ateapi_pb2
from atenet.worker.sandbox.gvisor.host import HostFiles
from atenet.worker.sandbox.interface import Launch, MemoryUnusableError
from atenet.worker.sandbox.plan import ContainerPlan, InvalidTemplateError

__all__ = ["Root", "Roots", "let_go"]

_REVERT = "revert the actor: it then starts on the files that are here now"
# Between finding an image by its name and holding it, it may have been replaced and collected.
_ATTEMPTS = 3


@dataclass(frozen=True)
class Root:
    """`image`: None: the host's programs; `said`: as a snapshot names it; `held`: keeps an image where
    it is until it is closed."""

    image: Image | None
    said: str
    held: int | None = None


def let_go(roots: Iterable[Root]) -> None:
    for root in roots:
        if root.held is not None:
            os.close(root.held)


class Roots:
    """Every method blocks for some ms."""

    def __init__(self, images: ImageStore | None, host: HostFiles) -> None:
        self._images = images
        self._host = host

    def check(self, template: ateapi_pb2.ActorTemplate, known: Mapping[str, str]) -> None:
        """`known`: of the memory that is to go on. Raises InvalidTemplateError."""
        for index, container in enumerate(template.containers):
            if not container.image or version_in(known.get(container.name, "")):
                continue
            where = f"template.containers[{index}]"
            found = self._find(container.image)
            if found is None:
                raise InvalidTemplateError(
                    f"{where}.image {container.image!r} is not on this node",
                    hint="`ate image import` brings it; `ate image list` shows what is here",
                )
            if not (container.command or found.command):
                raise InvalidTemplateError(
                    f"{where}.command is empty, and image {container.image!r} has none"
                )

    def take(self, launch: Launch) -> dict[str, Root]:
        """By container. Raises MemoryUnusableError when the memory is of other files than there are;
        AteError when there are none."""
        taken: dict[str, Root] = {}
        known = None if launch.memory is None else launch.roots
        try:
            for plan in launch.containers:
                if known is None:
                    taken[plan.name] = self._newest(plan)
                else:
                    said = known.get(plan.name, "")
                    taken[plan.name] = self._same(plan, said, newest=launch.newest)
        except BaseException:
            let_go(taken.values())
            raise
        return taken

    def _newest(self, plan: ContainerPlan) -> Root:
        if not plan.image:
            return Root(None, host_root(self._host.fingerprint()))
        for _ in range(_ATTEMPTS):
            image = self._find(plan.image)
            held = None if image is None or self._images is None else self._images.hold(image)
            if image is not None and held is not None:
                return Root(image, image_root(image.name, image.version), held)
        raise AteError(f"image {plan.image!r} is not on this node any more")

    def _same(self, plan: ContainerPlan, said: str, *, newest: bool) -> Root:
        version = version_in(said)
        if plan.image and version:
            return self._same_image(plan.image, version, newest=newest)
        here = host_root(self._host.fingerprint())
        if plan.image or version or not said:
            what = said or "files that it does not name"
            raise MemoryUnusableError(
                f"the memory of container {plan.name!r} is of {what}, its template has"
                f" {'image ' + plan.image if plan.image else 'no image'}",
                hint=_REVERT,
            )
        if said != here:
            raise MemoryUnusableError(
                f"the memory of container {plan.name!r} is of other programs than this host has now:"
                f" packages were installed or upgraded since ({said}, now {here})",
                hint=f"{_REVERT}; an image (`ate image import`) does not change under its actors",
            )
        return Root(None, here)

    def _same_image(self, name: str, version: str, *, newest: bool) -> Root:
        image = None if self._images is None else self._images.version(name, version)
        held = None if image is None or self._images is None else self._images.hold(image)
        if image is None or held is None:
            raise MemoryUnusableError(
                f"the memory is of version {version[:12]} of image {name!r}, which is not on this node",
                hint=_REVERT,
            )
        now = self._find(name)
        if newest and (now is None or now.version != version):
            os.close(held)
            raise MemoryUnusableError(f"image {name!r} has been replaced since")
        return Root(image, image_root(name, version), held)

    def _find(self, name: str) -> Image | None:
        return self._images.find(name) if self._images is not None else None
