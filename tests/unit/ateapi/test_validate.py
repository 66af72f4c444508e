"""Bad fields: InvalidArgument that begins with the field's path, and nothing stored."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from atenet.ateapi.failure import CallError
from atenet.ateapi.validate import actor as actors
from atenet.ateapi.validate import paging
from atenet.ateapi.validate import template as templates
from atenet.ateapi.validate import worker as workers
from atenet.proto import ateapi_pb2 as pb

from tests.support.control_plane import actor, template


def _field(check: Callable[[], object]) -> str:
    with pytest.raises(CallError) as caught:
        check()
    assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT
    return caught.value.message.split(": ")[0]


def _template(**changes: object) -> pb.ActorTemplate:
    """A good template whose container has these fields instead."""
    made = template()
    made.volumes.add(name="data", durable_dir=pb.DurableDirVolume())
    for field, value in changes.items():
        container = made.containers[0]
        container.ClearField(field)  # type: ignore[arg-type]
        container.MergeFrom(pb.Container(**{field: value}))  # type: ignore[arg-type]
    return made


_CONTAINER = "actor_template.containers[0]"


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (_template(command=[]), "command"),
        (_template(command=[""]), "command"),
        (_template(command=["a", "b\0"]), "command[1]"),
        (_template(name="Main"), "name"),
        (_template(env=[pb.EnvVar(name="1X")]), "env[0].name"),
        (_template(env=[pb.EnvVar(name="X"), pb.EnvVar(name="X")]), "env[1].name"),
        (_template(env=[pb.EnvVar(name="X", value="\0")]), "env[0].value"),
        (_template(working_dir="relative"), "working_dir"),
        (_template(image="nginx"), "image"),
        (_template(wakeup_probe=pb.WakeupProbe(timeout_seconds=1)), "wakeup_probe"),
        (
            _template(wakeup_probe=pb.WakeupProbe(tcp_port=80)),
            "wakeup_probe.timeout_seconds",
        ),
        (
            _template(wakeup_probe=pb.WakeupProbe(tcp_port=70000, timeout_seconds=1)),
            "wakeup_probe.tcp_port",
        ),
        (
            _template(
                wakeup_probe=pb.WakeupProbe(
                    http_get=pb.HTTPGet(path="x", port=80), timeout_seconds=1
                )
            ),
            "wakeup_probe.http_get.path",
        ),
        (
            _template(
                wakeup_probe=pb.WakeupProbe(
                    http_get=pb.HTTPGet(path="/a b", port=80), timeout_seconds=1
                )
            ),
            "wakeup_probe.http_get.path",
        ),
        (_template(mounts=[pb.VolumeMount(volume="no", path="/data")]), "mounts[0].volume"),
        (_template(mounts=[pb.VolumeMount(volume="data", path="data")]), "mounts[0].path"),
        (_template(mounts=[pb.VolumeMount(volume="data", path="/a/../b")]), "mounts[0].path"),
        (_template(mounts=[pb.VolumeMount(volume="data", path="/")]), "mounts[0].path"),
        (_template(mounts=[pb.VolumeMount(volume="data", path="/d")] * 2), "mounts[1].path"),
    ],
)
def test_a_bad_container_field_is_named(bad: pb.ActorTemplate, field: str) -> None:
    assert _field(lambda: templates.for_create(bad)) == f"{_CONTAINER}.{field}"


def _with(change: Callable[[pb.ActorTemplate], object]) -> pb.ActorTemplate:
    made = _template()
    change(made)
    return made


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (_with(lambda t: t.metadata.Clear()), "metadata.atespace"),
        (_with(lambda t: setattr(t.metadata, "uid", "x")), "metadata.uid"),
        (_with(lambda t: setattr(t.metadata, "version", 1)), "metadata.version"),
        (_with(lambda t: t.containers.pop()), "containers"),
        (_with(lambda t: t.containers.extend(list(t.containers))), "containers[1].name"),
        (_with(lambda t: t.volumes.extend(list(t.volumes))), "volumes[1].name"),
        (_with(lambda t: t.volumes.add(name="v")), "volumes[1]"),
        (_with(lambda t: t.volumes[0].host_path.SetInParent()), "volumes[0]"),
        (
            _with(lambda t: t.volumes.add(name="v", host_path=pb.HostPathVolume(path="x"))),
            "volumes[1].host_path.path",
        ),
        (
            _with(lambda t: setattr(t.sandbox_config, "sandbox_class", "docker")),
            "sandbox_config.sandbox_class",
        ),
        (
            _with(
                lambda t: setattr(
                    t.snapshot_config, "content_scope", pb.SNAPSHOT_CONTENT_SCOPE_FULL
                )
            ),
            "snapshot_config.content_scope",
        ),
        (_with(lambda t: setattr(t.resources, "cpu_milli", -1)), "resources.cpu_milli"),
        (_with(lambda t: t.idle_timeout.SetInParent()), "idle_timeout"),
        (_with(lambda t: t.idle_timeout.FromMilliseconds(999)), "idle_timeout"),
        (_with(lambda t: setattr(t.idle_timeout, "nanos", -1)), "idle_timeout.nanos"),
        (_with(lambda t: setattr(t.reclaim_after, "seconds", 1 << 40)), "reclaim_after"),
        (
            _with(lambda t: t.worker_selector.match_labels.update({"a b": "c"})),
            "worker_selector.match_labels",
        ),
        (
            _with(lambda t: t.worker_selector.match_labels.update({"a": "c c"})),
            "worker_selector.match_labels[a]",
        ),
    ],
)
def test_a_bad_template_field_is_named(bad: pb.ActorTemplate, field: str) -> None:
    assert _field(lambda: templates.for_create(bad)) == f"actor_template.{field}"


def test_a_good_template_passes() -> None:
    made = templates.for_create(
        _template(
            wakeup_probe=pb.WakeupProbe(
                http_get=pb.HTTPGet(path="/ready", port=80), timeout_seconds=30
            ),
            mounts=[pb.VolumeMount(volume="data", path="/data")],
            env=[pb.EnvVar(name="HOME", value="/data")],
            working_dir="/",
        )
    )
    assert made.status.ready


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 64, "a.b", "ü", "a/b", "a\n"])
def test_a_bad_name_is_named(name: str) -> None:
    assert _field(lambda: actors.for_create(actor(name))) == "actor.metadata.name"
    assert _field(lambda: actors.for_create(actor("a", name))) == "actor.metadata.atespace"


def test_an_actor_needs_a_template() -> None:
    bad = actor("a")
    bad.ClearField("actor_template")
    assert _field(lambda: actors.for_create(bad)) == "actor.actor_template"


def test_tags_are_refused_until_they_are_built() -> None:
    bad = actor("a")
    bad.source_tag.name = "v1"
    assert _field(lambda: actors.for_create(bad)) == "actor.source_tag"


def _registration(change: Callable[[pb.RegisterWorkerRequest], object]) -> pb.RegisterWorkerRequest:
    made = pb.RegisterWorkerRequest(
        worker=pb.Worker(
            metadata=pb.ResourceMetadata(name="worker-1"),
            worker_namespace="default",
            worker_pool="local",
            node_name="node-1",
            ips=["127.1.0.1"],
            epoch=1,
            node_endpoint="127.0.0.1:7444",
        ),
        capacity=pb.WorkerResources(actors=1),
    )
    change(made)
    return made


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (_registration(lambda r: r.ClearField("worker")), "worker"),
        (_registration(lambda r: r.worker.metadata.Clear()), "worker.metadata.name"),
        (_registration(lambda r: setattr(r.worker, "worker_pool", "")), "worker.worker_pool"),
        (_registration(lambda r: setattr(r.worker, "node_name", "N")), "worker.node_name"),
        (_registration(lambda r: r.worker.ips.pop()), "worker.ips"),
        (_registration(lambda r: r.worker.ips.extend(["::1", "::2"])), "worker.ips"),
        (_registration(lambda r: r.worker.ips.append("localhost")), "worker.ips[1]"),
        (_registration(lambda r: setattr(r.worker, "epoch", 0)), "worker.epoch"),
        (_registration(lambda r: setattr(r.worker.status, "state", 9)), "worker.status.state"),
        (_registration(lambda r: r.hosted_actor_uids.extend(["u"] * 100_001)), "hosted_actor_uids"),
        (
            _registration(lambda r: r.capacity.resources.update({str(i): 1 for i in range(65)})),
            "capacity.resources",
        ),
        (
            _registration(lambda r: setattr(r.worker, "node_endpoint", "nowhere")),
            "worker.node_endpoint",
        ),
        (
            _registration(lambda r: setattr(r.worker, "node_endpoint", "h:0")),
            "worker.node_endpoint",
        ),
        (
            _registration(lambda r: setattr(r.worker, "spiffe_id", "spiffe://x")),
            "worker.spiffe_id",
        ),
        (_registration(lambda r: setattr(r.capacity, "actors", -1)), "capacity.actors"),
        (_registration(lambda r: r.hosted_actor_uids.append("../x")), "hosted_actor_uids[0]"),
        (_registration(lambda r: r.activity.add()), "activity[0].actor_uid"),
        (_registration(lambda r: r.activity.add(actor_uid="u", idle_ms=-1)), "activity[0].idle_ms"),
    ],
)
def test_a_bad_registration_field_is_named(bad: pb.RegisterWorkerRequest, field: str) -> None:
    assert _field(lambda: workers.for_register(bad)) == field


def test_a_template_is_no_larger_than_a_page_of_them_can_be() -> None:
    large = _template(env=[pb.EnvVar(name=f"V{i}", value="x" * 100_000) for i in range(6)])
    assert _field(lambda: templates.for_create(large)) == "actor_template"


_UNKNOWN = b"\x98\x06\x01"  # field 99


def test_a_field_that_is_not_known_is_not_kept() -> None:
    metadata = pb.ResourceMetadata.FromString(actor("a").metadata.SerializeToString() + _UNKNOWN)
    given = pb.Actor(metadata=metadata, actor_template=actor("a").actor_template)
    made = actors.for_create(given)
    assert made.SerializeToString() == actors.for_create(actor("a")).SerializeToString()
    container = template().containers[0].SerializeToString() + _UNKNOWN
    odd = template()
    odd.containers[0].CopyFrom(pb.Container.FromString(container))
    good = templates.for_create(template())
    assert templates.for_create(odd).SerializeToString() == good.SerializeToString()


def test_a_page_ends_before_it_outgrows_a_message() -> None:
    large = [pb.Actor(metadata=pb.ResourceMetadata(name="x" * 2**20)) for _ in range(5)]
    page = paging.Page("actors", pb.ListActorsRequest(page_size=10))
    items, token = page.cut(large, lambda a: (a.metadata.uid,))
    assert 0 < len(items) < 5
    assert token
    (huge,), token = page.cut(
        [pb.Actor(metadata=pb.ResourceMetadata(name="x" * 2**22))], lambda a: (a.metadata.uid,)
    )
    assert huge.ByteSize() > 2**22
    assert not token


@pytest.mark.parametrize(
    "token",
    [
        *("x", "é", "=", "a" * 2000, "bnVsbA==", "W10=", "e30="),
        paging.page_token("workers", "a"),
        paging.page_token("actors", "a", "b"),
        paging.page_token("actors", "a\0"),
    ],
)
def test_a_token_of_another_list_is_refused(token: str) -> None:
    request = pb.ListActorsRequest(page_token=token)
    assert _field(lambda: paging.Page("actors", request)) == "page_token"
