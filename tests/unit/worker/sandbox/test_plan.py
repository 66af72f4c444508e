from collections.abc import Callable
from pathlib import Path

import pytest
from atenet.proto import ateapi_pb2 as pb
from atenet.worker.sandbox import (
    Bind,
    Common,
    InvalidTemplateError,
    plan_containers,
    volume_directories,
)

ACTOR = pb.ObjectRef(atespace="team", name="agent")
DIRECTORY = Path("/state/actors/uid")


def template() -> pb.ActorTemplate:
    made = pb.ActorTemplate(containers=[pb.Container(name="main", command=["serve", "--fast"])])
    made.volumes.add(name="data").durable_dir.SetInParent()
    made.containers[0].mounts.add(volume="data", path="/data/")
    return made


def plan(made: pb.ActorTemplate, *allowed: Path):  # type: ignore[no-untyped-def]
    return plan_containers(made, ACTOR, DIRECTORY, allowed)


def test_a_template_becomes_a_plan() -> None:
    made = template()
    made.containers[0].env.add(name="GREETING", value="hello")
    (found,) = plan(made)
    assert found.command == ("serve", "--fast")
    assert found.environment == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/home/actor",
        "GREETING": "hello",
        "ATE_ATESPACE": "team",
        "ATE_ACTOR": "agent",
    }
    assert found.working_dir == "/home/actor"
    assert found.binds == (Bind(DIRECTORY / "volumes/data", "/data", read_only=False),)
    assert volume_directories(made, DIRECTORY) == {"data": DIRECTORY / "volumes/data"}


def test_what_every_container_has_yields_to_its_template() -> None:
    made = template()
    made.containers[0].env.add(name="PIP_CERT", value="/mine")
    trust = Bind(Path("/state/trust"), "/etc/ate/trust", read_only=True)
    common = Common({"PIP_CERT": "/theirs", "SSL_CERT_FILE": "/theirs"}, (trust,))
    (found,) = plan_containers(made, ACTOR, DIRECTORY, (), common)
    assert found.environment["PIP_CERT"] == "/mine"
    assert found.environment["SSL_CERT_FILE"] == "/theirs"
    assert found.binds[0] == trust
    assert len(found.binds) == 2


def test_the_actor_cannot_be_told_to_be_another() -> None:
    made = template()
    made.containers[0].env.add(name="ATE_ACTOR", value="somebody-else")
    assert plan(made)[0].environment["ATE_ACTOR"] == "agent"


def test_secrets_stay_out_of_the_plans_text() -> None:
    made = template()
    made.containers[0].env.add(name="TOKEN", value="hush")
    assert "hush" not in repr(plan(made))


def _containers(made: pb.ActorTemplate) -> None:
    del made.containers[:]


def _same_name(made: pb.ActorTemplate) -> None:
    made.containers.add(name="main", command=["x"])


def _mount(path: str, volume: str = "data") -> Callable[[pb.ActorTemplate], None]:
    def change(made: pb.ActorTemplate) -> None:
        made.containers[0].mounts[0].path = path
        made.containers[0].mounts[0].volume = volume

    return change


def _second_mount(path: str) -> Callable[[pb.ActorTemplate], None]:
    def change(made: pb.ActorTemplate) -> None:
        made.containers[0].mounts.add(volume="data", path=path)

    return change


def _env(name: str, value: str = "x") -> Callable[[pb.ActorTemplate], None]:
    return lambda made: made.containers[0].env.add(name=name, value=value) and None


def _set(field: str, value: object) -> Callable[[pb.ActorTemplate], None]:
    return lambda made: setattr(made.containers[0], field, value)


def _command(*words: str) -> Callable[[pb.ActorTemplate], None]:
    def change(made: pb.ActorTemplate) -> None:
        made.containers[0].command[:] = words

    return change


def _volume(name: str) -> Callable[[pb.ActorTemplate], None]:
    return lambda made: made.volumes.add(name=name).durable_dir.SetInParent()


def _volume_without_kind(made: pb.ActorTemplate) -> None:
    made.volumes.add(name="what")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_containers, "template.containers is empty"),
        (_same_name, "containers[1].name 'main' is used twice"),
        (_set("name", "../main"), "containers[0].name '../main'"),
        (_command(), "containers[0].command is empty"),
        (_command(""), "containers[0].command is empty"),
        (_command("a", "b\0c"), "containers[0].command has a NUL"),
        (_env("A=B"), "env[0].name 'A=B'"),
        (_env(""), "env[0].name ''"),
        (_env("A", "x\0y"), "env[0].value has a NUL"),
        (_set("working_dir", "data"), "containers[0].working_dir 'data'"),
        (_set("working_dir", "/data/../etc"), "containers[0].working_dir"),
        (_mount("data"), "mounts[0].path 'data'"),
        (_mount("/data/../usr"), "mounts[0].path '/data/../usr'"),
        (_mount("//data"), "mounts[0].path '//data'"),
        (_mount("/"), "mounts[0].path '/' belongs to the system"),
        (_mount("/usr"), "mounts[0].path '/usr' belongs to the system"),
        (_mount("/usr/bin"), "mounts[0].path '/usr/bin' belongs to the system"),
        (_mount("/etc/ssl"), "mounts[0].path '/etc/ssl' belongs to the system"),
        (_mount("/proc/sys"), "mounts[0].path '/proc/sys' belongs to the system"),
        (_mount("/run/ate"), "mounts[0].path '/run/ate' belongs to the system"),
        (_mount("/home"), "mounts[0].path '/home' belongs to the system"),
        (_mount("/data", "dato"), "mounts[0].volume 'dato' is not a volume"),
        (_second_mount("/data"), "mounts[1].path '/data' overlaps"),
        (_second_mount("/data/inner"), "mounts[1].path '/data/inner' overlaps"),
        (_volume("data"), "volumes[1].name 'data' is used twice"),
        (_volume("../x"), "volumes[1].name '../x'"),
        (_volume_without_kind, "volumes[1] needs exactly one of"),
    ],
)
def test_what_is_wrong_is_named(change: Callable[[pb.ActorTemplate], None], named: str) -> None:
    made = template()
    change(made)
    with pytest.raises(InvalidTemplateError) as caught:
        plan(made)
    assert named in caught.value.message


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "allowed" / "tools").mkdir(parents=True)
    (tmp_path / "private").mkdir()
    (tmp_path / "allowed" / "escape").symlink_to(tmp_path / "private")
    return tmp_path


def with_host_path(path: Path | str) -> pb.ActorTemplate:
    made = template()
    made.volumes.add(name="tools").host_path.path = str(path)
    made.containers[0].mounts.add(volume="tools", path="/opt/tools")
    return made


def test_a_host_path_below_an_allowed_one_is_read_only(host: Path) -> None:
    (found,) = plan(with_host_path(host / "allowed" / "tools"), host / "allowed")
    assert found.binds[1] == Bind(host / "allowed" / "tools", "/opt/tools", read_only=True)


@pytest.mark.parametrize("path", ["private", "allowed/escape", "allowed-not", "allowed/../private"])
def test_any_other_host_path_is_refused(host: Path, path: str) -> None:
    with pytest.raises(InvalidTemplateError, match=r"volumes\[1\].host_path.path"):
        plan(with_host_path(f"{host}/{path}"), host / "allowed")


def test_none_is_allowed_unless_said(host: Path) -> None:
    with pytest.raises(InvalidTemplateError, match="--allow-host-path"):
        plan(with_host_path(host / "allowed"))
