"""Templates from YAML: what is read, and how a mistake is told."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from atenet.cli.failure import BadInput
from atenet.cli.template_file import parse_templates, read_templates
from atenet.proto import ateapi_pb2 as pb

TOP = Path(__file__).resolve().parents[3]
GOOD = """
metadata: {atespace: team-a, name: web}
containers:
  - name: web
    command: [python3, -m, http.server, 80]
    env: [{name: RATIO, value: 1.10}, {name: ON, value: yes}]
    wakeup_probe: {tcp_port: 80, timeoutSeconds: 5}
volumes:
  - name: data
    durableDir:
snapshotConfig: {contentScope: DATA}
workerSelector: {matchLabels: {zone: a}}
resources: {memoryBytes: 268_435_456}
idleTimeout: 15m
reclaim_after: 1.5
"""


def test_both_spellings_and_yaml_scalars_are_taken_as_written() -> None:
    (found,) = parse_templates(GOOD, "f.yaml")
    container = found.containers[0]
    assert list(container.command) == ["python3", "-m", "http.server", "80"]
    assert [(e.name, e.value) for e in container.env] == [("RATIO", "1.10"), ("ON", "yes")]
    assert (container.wakeup_probe.tcp_port, container.wakeup_probe.timeout_seconds) == (80, 5)
    assert found.volumes[0].HasField("durable_dir")
    assert found.snapshot_config.content_scope == pb.SNAPSHOT_CONTENT_SCOPE_DATA
    assert dict(found.worker_selector.match_labels) == {"zone": "a"}
    assert found.resources.memory_bytes == 268435456
    assert found.idle_timeout.ToTimedelta() == timedelta(minutes=15)
    assert found.reclaim_after.ToTimedelta() == timedelta(seconds=1.5)


def test_each_document_is_a_template() -> None:
    assert len(parse_templates(f"{GOOD}---\n{GOOD}---\n", "f")) == 2


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("metadata: {name: a}\ncontainer: []", 2, "unknown field `container`"),
        ("containers:\n  - comand: [x]", 2, "unknown field `containers[0].comand`"),
        ("containers:\n  name: x", 2, "containers: must be a list"),
        ("containers:\n  - command: ls", 2, "containers[0].command: must be a list"),
        ("metadata: web", 1, "metadata: must be a mapping"),
        ("metadata:\n  name: [a]", 2, "metadata.name: must be a string"),
        ("metadata: {uid: x}", 1, "unknown field `metadata.uid`"),
        ("status: {ready: true}", 1, "unknown field `status`"),
        ("snapshotConfig:\n  contentScope: ALL", 2, "must be one of FULL, DATA, not 'ALL'"),
        (
            "containers:\n- mounts:\n  - {volume: a, readOnly: maybe}",
            3,
            "containers[0].mounts[0].readOnly: must be true or false",
        ),
        (
            "containers:\n- wakeupProbe: {tcpPort: eighty}",
            2,
            "containers[0].wakeupProbe.tcpPort: must be a whole number",
        ),
        (
            "containers:\n- wakeupProbe: {tcpPort: 99999999999}",
            2,
            "containers[0].wakeupProbe.tcpPort: must be a whole number",
        ),
        ("metadata: {name: a}\nmetadata: {name: b}", 2, "metadata: is there twice"),
        ("metadata: {name: a}\ncontainers: [", 2, "stream end"),
        ("volumes:\n- durableDir: {size: 3}", 2, "unknown field `volumes[0].durableDir.size`"),
        (
            "idleTimeout: soon",
            1,
            "idleTimeout: must be a duration such as 90s, 15m or 2h, not 'soon'",
        ),
        ("idleTimeout: -5s", 1, "idleTimeout: must be a duration"),
        ("idleTimeout: {seconds: 5}", 1, "idleTimeout: must be a duration"),
        ("- a", 1, "the document: must be a mapping"),
    ],
)
def test_a_mistake_is_told_by_line_and_field(text: str, line: int, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_templates(text, "web.yaml")
    assert re.match(rf"web\.yaml, line {line}: ", caught.value.message), caught.value.message
    assert problem in caught.value.message


def test_a_near_miss_is_guessed_and_the_allowed_fields_are_listed() -> None:
    with pytest.raises(BadInput) as caught:
        parse_templates("containers:\n  - comand: [x]", "f")
    assert "did you mean `command`?" in str(caught.value.hint)
    assert "wakeupProbe" in str(caught.value.hint)


def test_an_empty_file_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no template"):
        parse_templates("# nothing\n", "f")
    with pytest.raises(BadInput, match=r"cannot read .*none\.yaml: No such file"):
        read_templates(str(tmp_path / "none.yaml"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_templates(str(tmp_path / "binary"))


def test_a_relative_host_path_is_taken_from_the_files_directory(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "volumes: [{name: a, hostPath: {path: ../code}}, {name: b, hostPath: {path: /srv}}]"
    )
    (found,) = read_templates(str(tmp_path / "t.yaml"))
    assert [v.host_path.path for v in found.volumes] == [str(tmp_path.parent / "code"), "/srv"]


def examples() -> list[Path]:
    return sorted((TOP / "examples").rglob("template*.yaml"))


@pytest.mark.parametrize("file", examples(), ids=lambda f: str(f.relative_to(TOP)))
def test_every_example_loads(file: Path) -> None:
    assert read_templates(str(file))


def test_the_page_on_templates_shows_one_that_loads_and_names_every_field() -> None:
    page = (TOP / "docs" / "templates.md").read_text()
    (found,) = parse_templates(page.split("```yaml")[1].split("```")[0], "docs/templates.md")
    for field in found.DESCRIPTOR.fields:
        if field.name != "status":
            assert field.json_name in page, field.json_name
