#!/usr/bin/env python3
"""Builds the images of deploy/images: `make images`, with buildah, podman or docker, whichever is there.

Standard library only. IMAGE_REGISTRY and IMAGE_TAG say what they are called, IMAGE_BUILDER which
program builds; GVISOR=yes puts runsc into the one that runs actors; PYTHON_IMAGE, RUST_IMAGE and
GO_IMAGE are the bases, where a mirror has them under other names, or by digest. IMAGE_ARCHIVE names a
file that all of them are saved in, for nodes that reach no registry. A builder's own cache keeps what
has not changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "deploy" / "images"
BASE = "base"
BUILDERS = ("buildah", "podman", "docker")
# Settings that Containerfiles declare, by the same names.
ARGUMENTS = ("PYTHON_IMAGE", "RUST_IMAGE", "GO_IMAGE")


class ImagesError(Exception):
    """Nothing can be built; the text says what to do."""


def names() -> list[str]:
    """The base first: all others are made from it."""
    found = sorted(path.name.removesuffix(".Containerfile") for path in IMAGES.iterdir())
    return [BASE, *(name for name in found if name != BASE)]


def version() -> str:
    """The product's own, as pyproject.toml has it."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found, "pyproject.toml has no version"
    return found[1]


def builder(environment: Mapping[str, str]) -> str:
    """The program that builds. Raises ImagesError."""
    wanted = environment.get("IMAGE_BUILDER")
    for name in [wanted] if wanted else BUILDERS:
        program = shutil.which(name, path=environment.get("PATH"))
        if program is not None and _works(program, environment):
            return program
    looked = f"IMAGE_BUILDER={wanted}" if wanted else ", ".join(BUILDERS)
    raise ImagesError(
        f"no image builder works here (looked for {looked})\n"
        "hint: install buildah, or start the daemon of docker, then run the same command again"
    )


def _works(program: str, environment: Mapping[str, str]) -> bool:
    """A docker without its daemon is none."""
    words = [program, "info"]
    return (
        subprocess.run(words, capture_output=True, env=dict(environment), check=False).returncode
        == 0
    )


def commands(program: str, environment: Mapping[str, str]) -> list[list[str]]:
    """One build an image, in order. Pure. Raises ImagesError."""
    if (gvisor := environment.get("GVISOR") or "no") not in ("yes", "no"):
        raise ImagesError(f"GVISOR={gvisor}: it is yes or no")
    return [_command(program, environment, name) for name in names()]


def reference(environment: Mapping[str, str], name: str) -> str:
    """What an image is called."""
    registry = environment.get("IMAGE_REGISTRY") or "localhost/atenet"
    return f"{registry}/{name}:{environment.get('IMAGE_TAG') or version()}"


def _command(program: str, environment: Mapping[str, str], name: str) -> list[str]:
    file = IMAGES / f"{name}.Containerfile"
    declared = re.findall(r"^ARG (\w+)", file.read_text(), re.MULTILINE)
    given = {each: environment[each] for each in ARGUMENTS if environment.get(each)}
    given["BASE"] = reference(environment, BASE)
    words = [program, "build", "--file", str(file), "--tag", reference(environment, name)]
    words += ["--label", f"org.opencontainers.image.version={version()}"]
    if re.search(r"^FROM \S+ AS gvisor$", file.read_text(), re.MULTILINE):
        words += ["--target", "gvisor" if environment.get("GVISOR") == "yes" else "plain"]
    if Path(program).name != "docker":
        words += ["--layers"]  # the others keep none unless told
    for argument, value in given.items():
        if argument in declared:
            words += ["--build-arg", f"{argument}={value}"]
    return [*words, str(ROOT)]


def saving(
    program: str, environment: Mapping[str, str], file: Path, layout: Path
) -> list[list[str]]:
    """What saves all of them. Pure. buildah fills `layout`, a directory, of which `file` is made then."""
    wanted = [reference(environment, name) for name in names()]
    match Path(program).name:
        case "buildah":
            return [[program, "push", "--quiet", each, f"oci:{layout}:{each}"] for each in wanted]
        case "podman":
            several = ["--multi-image-archive"]
        case _:
            several = []
    return [[program, "save", *several, "--output", str(file), *wanted]]


def _save(program: str, environment: Mapping[str, str], file: Path) -> None:
    """In place of what was there, once it is whole. Raises ImagesError."""
    print(f"==> {file}", flush=True)
    if not file.parent.is_dir():
        raise ImagesError(f"IMAGE_ARCHIVE={file}: there is no directory {file.parent}")
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".images-") as scratch:
        layout, whole = Path(scratch) / "layout", Path(scratch) / "images.tar"
        for words in saving(program, environment, whole, layout):
            _run(words)
        if layout.is_dir():
            with tarfile.open(whole, "w") as archive:
                for each in sorted(layout.iterdir()):
                    archive.add(each, each.name)
        whole.replace(file)


def _run(words: list[str]) -> None:
    if subprocess.run(words, check=False).returncode:
        raise ImagesError(f"`{' '.join(words)}` failed; its output is above")


def main(arguments: Sequence[str]) -> int:
    """`--print` shows the commands alone."""
    try:
        if "--print" in arguments:
            for words in commands("buildah", os.environ):
                print(" ".join(words))
            return 0
        program = builder(os.environ)
        for words in commands(program, os.environ):
            print(f"==> {words[words.index('--tag') + 1]}", flush=True)
            _run(words)
        if os.environ.get("IMAGE_ARCHIVE"):
            _save(program, os.environ, Path(os.environ["IMAGE_ARCHIVE"]))
    except ImagesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
