import asyncio
from collections.abc import AsyncIterator

import pytest
from atenet.errors import AteError
from atenet.worker.network import netns
from atenet.worker.probe import NotReadyError
from atenet.worker.sandbox import InvalidTemplateError
from atenet.worker.supervisor import Checkpoint, DrainingError, FullError, NotHostedError
from atenet.worker.workload import StartAbortedError, StartFailedError, State

from tests.support.actor_box import (
    GET,
    HTTP_ACTOR,
    ActorBox,
    ask,
    http_probe,
    kill_actor,
    new_incarnation,
    processes_of,
    put,
    python,
    template,
)
from tests.support.eventually import eventually
from tests.support.hosting import Hosting, hosting

# Ready only once /data/go exists.
GATED = "import os, time\nwhile not os.path.exists('/data/go'): time.sleep(0.01)\n" + HTTP_ACTOR


@pytest.fixture
async def host(box: ActorBox) -> AsyncIterator[Hosting]:
    async with hosting(box) as made:
        yield made


async def test_an_actor_is_started_and_answers(host: Hosting) -> None:
    actor = new_incarnation()
    timings = await host.run(actor, template(probe=http_probe()))
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")
    assert host.supervisor.hosted() == [actor.uid]
    assert min(timings.network_ms, timings.sandbox_ms, timings.ready_ms) > 0
    assert timings.fetch_ms == 0


@pytest.mark.conformance("T-04")
async def test_ingress_opens_only_when_the_actor_is_ready(host: Hosting) -> None:
    actor = new_incarnation()
    starting = asyncio.ensure_future(host.run(actor, template(*python(GATED), probe=http_probe())))
    log = host.box.where / actor.uid / "logs" / "main.log"
    await eventually(log.exists)
    assert host.supervisor.workloads()[0].state is State.STARTING
    assert host.ingress.open == {}
    (host.box.data_of(actor.uid) / "go").touch()
    await starting
    assert list(host.ingress.open) == [actor]


@pytest.mark.conformance("E-01")
async def test_egress_is_open_before_the_actor_is_ready_and_until_it_has_stopped(
    host: Hosting,
) -> None:
    actor = new_incarnation()
    made = template(*python(GATED), probe=http_probe())
    directory = host.directory(actor)
    starting = asyncio.ensure_future(
        host.supervisor.run(actor, made, directory, gateway="gateway.example:443")
    )
    log = host.box.where / actor.uid / "logs" / "main.log"
    await eventually(log.exists)
    assert host.egress.open_now == {actor: "gateway.example:443"}
    assert host.ingress.open == {}
    (host.box.data_of(actor.uid) / "go").touch()
    await starting
    host.ingress.hold = True
    stopping = asyncio.ensure_future(host.supervisor.checkpoint(actor))
    await host.ingress.closing.wait()
    assert actor in host.egress.open_now, "a request in its grace may need it"
    host.ingress.let_go.set()
    await stopping
    assert host.egress.events == [("open", actor.uid), ("close", actor.uid)]


@pytest.mark.conformance("E-03")
async def test_an_actor_whose_egress_cannot_be_opened_is_not_started(host: Hosting) -> None:
    actor = new_incarnation()
    host.egress.fail_opening = AteError("no certificate today")
    with pytest.raises(AteError, match="no certificate today"):
        await host.run(actor, template())
    assert not (host.box.where / actor.uid / "logs" / "main.log").exists()
    assert processes_of(actor.uid) == []
    assert netns.names(host.box.prefix) == []
    host.egress.fail_opening = None
    await host.run(actor, template())


async def test_an_actor_that_nobody_will_reach_has_no_egress_either(host: Hosting) -> None:
    """A golden start is for all actors of its template: no policy is its own."""
    actor = new_incarnation()
    directory = host.directory(actor)
    await host.supervisor.run(actor, template(), directory, golden=True, gateway="g.example:443")
    assert host.egress.open_now == {}


async def test_running_it_again_changes_nothing(host: Hosting) -> None:
    actor = new_incarnation()
    first = await host.run(actor, template())
    again = await host.run(actor, template())
    assert again == first
    assert [event for event, *_ in host.ingress.events] == ["activate"]


async def test_two_callers_start_it_once(host: Hosting) -> None:
    actor = new_incarnation()
    one, other = await asyncio.gather(host.run(actor, template()), host.run(actor, template()))
    assert one == other
    assert [event for event, *_ in host.ingress.events] == ["activate"]


async def test_a_caller_that_leaves_does_not_stop_the_start(host: Hosting) -> None:
    actor = new_incarnation()
    leaving = asyncio.ensure_future(host.run(actor, template(*python(GATED), probe=http_probe())))
    await eventually(lambda: bool(host.supervisor.workloads()))
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    (host.directory(actor) / "volumes/data/go").touch()
    await host.run(actor, template())
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")


@pytest.mark.conformance("T-05")
async def test_checkpoint_closes_ingress_then_stops_then_answers(host: Hosting) -> None:
    actor = new_incarnation()
    host.ingress.hold = True
    await host.run(actor, template(probe=http_probe()))
    gateway = host.gateway(actor)
    storing = asyncio.ensure_future(host.supervisor.checkpoint(actor))
    await host.ingress.closing.wait()
    # Requests that run have their grace: the actor still answers them.
    assert (await ask(gateway, put(b"last word"))).startswith(b"HTTP/1.1 200")
    host.ingress.let_go.set()
    assert await storing is Checkpoint.STOPPED
    assert host.ingress.events[-1] == ("deactivate", actor.uid, 5.0)
    assert (host.box.data_of(actor.uid) / "greeting").read_text() == "last word"
    assert not gateway.exists()
    assert host.supervisor.hosted() == []


async def test_an_actor_comes_back_with_its_files(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))
    await ask(host.gateway(actor), put(b"remember"))
    await host.supervisor.checkpoint(actor)
    await host.run(actor, template(probe=http_probe()))
    assert (await ask(host.gateway(actor), GET)).endswith(b"remember")


async def test_checkpoint_of_a_stranger_says_so(host: Hosting) -> None:
    with pytest.raises(NotHostedError):
        await host.supervisor.checkpoint(new_incarnation())


async def test_terminate_of_a_stranger_succeeds(host: Hosting) -> None:
    await host.supervisor.terminate(new_incarnation())


async def test_terminate_has_no_grace(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template())
    await host.supervisor.terminate(actor)
    assert host.ingress.events[-1] == ("deactivate", actor.uid, 0)
    assert host.supervisor.workloads() == []


async def test_terminate_ends_a_start_that_waits(host: Hosting) -> None:
    actor = new_incarnation()
    starting = asyncio.ensure_future(host.run(actor, template(*python(GATED), probe=http_probe())))
    await eventually((host.box.where / actor.uid / "logs" / "main.log").exists)
    await host.supervisor.terminate(actor)
    with pytest.raises(StartAbortedError):
        await starting
    assert host.supervisor.workloads() == []


async def test_a_full_worker_says_so_and_has_room_again_after(box: ActorBox) -> None:
    async with hosting(box, slots=1) as host:
        one, other = new_incarnation("one"), new_incarnation("other")
        await host.run(one, template())
        with pytest.raises(FullError, match="all 1 slots"):
            await host.run(other, template())
        await host.supervisor.checkpoint(one)
        await host.run(other, template())
        assert host.supervisor.hosted() == [other.uid]


async def test_an_actor_that_ends_during_its_start_says_why(host: Hosting) -> None:
    actor = new_incarnation()
    source = "import sys; print('no database', file=sys.stderr); sys.exit(3)"
    with pytest.raises(StartFailedError) as caught:
        await host.run(actor, template(*python(source), probe=http_probe()))
    assert "container 'main' exited with status 3" in caught.value.message
    assert "no database" in caught.value.message
    assert host.supervisor.workloads() == []


async def test_an_actor_that_is_never_ready_is_stopped(host: Hosting) -> None:
    actor = new_incarnation()
    with pytest.raises(NotReadyError, match="was not ready in 2 s"):
        await host.run(
            actor,
            template(
                *python(HTTP_ACTOR.replace("send_response(200)", "send_response(404)")),
                probe=http_probe(seconds=2),
            ),
        )
    assert host.supervisor.workloads() == []


async def test_an_activation_that_fails_undoes_the_rest(host: Hosting) -> None:
    actor = new_incarnation()
    host.ingress.fail_activation = True
    with pytest.raises(AteError, match="as ordered"):
        await host.run(actor, template())
    assert netns.names(host.box.prefix) == []
    assert processes_of(actor.uid) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t.containers[0].command.__delitem__(slice(None)), "command is empty"),
        (lambda t: t.containers[0].wakeup_probe.SetInParent(), "wakeup_probe"),
        (lambda t: setattr(t.containers[0], "image", "x"), "image"),
        (lambda t: setattr(t.sandbox_config, "sandbox_class", "gvisor"), "sandbox_class 'gvisor'"),
    ],
)
async def test_a_bad_template_starts_nothing(host: Hosting, change, named: str) -> None:  # type: ignore[no-untyped-def]
    bad = template()
    change(bad)
    with pytest.raises(InvalidTemplateError) as caught:
        await host.run(new_incarnation(), bad)
    assert named in caught.value.message
    assert host.supervisor.workloads() == []


async def test_an_actor_that_ends_by_itself_is_noticed_and_closed(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))
    gateway = host.gateway(actor)
    kill_actor(actor.uid)
    await eventually(lambda: host.changes != [])
    assert host.changes[-1] == []
    assert host.ingress.open == {}
    assert not gateway.exists()
    (workload,) = host.supervisor.workloads()
    assert workload.state is State.EXITED
    assert await host.supervisor.checkpoint(actor) is Checkpoint.FOUND_STOPPED
    assert host.supervisor.workloads() == []


async def test_an_actor_that_ended_can_be_run_again(host: Hosting) -> None:
    actor = new_incarnation()
    await host.run(actor, template(probe=http_probe()))
    kill_actor(actor.uid)
    await eventually(lambda: host.changes != [])
    await host.run(actor, template(probe=http_probe()))
    assert (await ask(host.gateway(actor), GET)).endswith(b"hello")


@pytest.mark.conformance("T-06")
async def test_a_late_teardown_leaves_a_newer_incarnation_alone(host: Hosting) -> None:
    old, new = new_incarnation("same"), new_incarnation("same")
    await host.run(old, template())
    await host.run(new, template(probe=http_probe()))
    await host.supervisor.terminate(old)
    assert host.supervisor.hosted() == [new.uid]
    assert (await ask(host.gateway(new), GET)).endswith(b"hello")


@pytest.mark.conformance("T-06")
async def test_several_actors_with_equal_addresses_answer_for_themselves(host: Hosting) -> None:
    actors = [new_incarnation(f"agent-{n}") for n in range(3)]
    await asyncio.gather(*(host.run(actor, template(probe=http_probe())) for actor in actors))
    for actor in actors:
        await ask(host.gateway(actor), put(actor.uid.encode()))
    for actor in actors:
        assert (await ask(host.gateway(actor), GET)).endswith(actor.uid.encode())


async def test_close_takes_nothing_new_gives_up_starts_and_stops_the_rest(box: ActorBox) -> None:
    async with hosting(box) as host:
        running, starting = new_incarnation("running"), new_incarnation("starting")
        await host.run(running, template())
        waiting = asyncio.ensure_future(
            host.run(starting, template(*python(GATED), probe=http_probe()))
        )
        await eventually((box.where / starting.uid / "logs" / "main.log").exists)
        await host.supervisor.close()
        with pytest.raises(StartAbortedError):
            await waiting
        with pytest.raises(DrainingError):
            await host.run(new_incarnation(), template())
        assert host.supervisor.workloads() == []
        assert ("deactivate", running.uid, 5.0) in host.ingress.events
    assert netns.names(box.prefix) == []


async def test_two_containers_share_the_network_and_the_volume(host: Hosting) -> None:
    made = template(probe=http_probe())
    source = (
        "import urllib.request, time\n"
        "while True:\n"
        "    try: body = urllib.request.urlopen('http://127.0.0.1/').read(); break\n"
        "    except OSError: time.sleep(0.01)\n"
        "open('/data/seen', 'wb').write(body)\n"
        "time.sleep(3600)\n"
    )
    side = made.containers.add(name="side", command=python(source))
    side.mounts.add(volume="data", path="/data")
    actor = new_incarnation()
    await host.run(actor, made)
    seen = host.box.data_of(actor.uid) / "seen"
    await eventually(lambda: seen.exists() and seen.read_bytes() == b"hello")
