"""The command lines of a local system: each process's own settings must accept them."""

import itertools
from pathlib import Path

import click
import pytest
from atenet.ateapi.main import main as ateapi
from atenet.atelet.main import main as atelet
from atenet.cli.atenet import atenet
from atenet.local.layout import Layout
from atenet.local.processes import Credentials, ProcessSpec, plan
from atenet.local.settings import DATAPLANES, LocalSettings
from atenet.worker.main import main as ateworker

COMMANDS = {"ateapi": ateapi, "atelet": atelet, "ateworker": ateworker, "atenet": atenet}


@pytest.fixture(params=DATAPLANES)
def specs(request: pytest.FixtureRequest, tmp_path: Path) -> list[ProcessSpec]:
    creds = Credentials(
        api_pod=tmp_path / "a.pem",
        api_service=tmp_path / "b.pem",
        router_pod=tmp_path / "h.pem",
        router_service=tmp_path / "i.pem",
        egress_pod=tmp_path / "j.pem",
        egress_service=tmp_path / "k.pem",
        provider_service=tmp_path / "l.pem",
        atelet=tmp_path / "c.pem",
        worker=tmp_path / "d.pem",
        pod_roots=tmp_path / "e.pem",
        service_roots=tmp_path / "f.pem",
        actor_roots=tmp_path / "m.pem",
        interception_roots=tmp_path / "n.pem",
        interception_ca=(tmp_path / "o.crt", tmp_path / "o.key"),
        actor_ca=(tmp_path / "g.crt", tmp_path / "g.key"),
    )
    settings = LocalSettings(
        dataplane=request.param,
        workers=3,
        allow_host_path=(tmp_path,),
        suspend_grace=0.5,
        egress_name_server=("127.0.0.53", "[::1]:5353"),
        egress_allow_cidr=("127.9.0.0/16",),
    )
    return plan(Layout(tmp_path), settings, creds)


def test_every_command_line_parses(specs: list[ProcessSpec]) -> None:
    for spec in specs:
        script, *arguments = _own(spec.argv)
        _parse(COMMANDS[Path(script).name], list(arguments))


def _own(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Without what stands before the script."""
    return tuple(itertools.dropwhile(lambda word: Path(word).name not in COMMANDS, argv))


def test_only_the_minter_has_a_way_to_the_interception_key_on_envoy(
    specs: list[ProcessSpec], tmp_path: Path
) -> None:
    named = {spec.name for spec in specs if str(tmp_path / "o.key") in spec.argv}
    egress = next(spec for spec in specs if spec.name == "egress")
    if "agentgateway" in egress.argv:
        assert named == set()
        return
    assert named == {"sdsmint"}
    # The directory of the keys is another, empty one for it, and it cannot undo that.
    assert egress.argv[:4] == ("unshare", "--mount", "--propagation", "private")
    script = egress.argv[egress.argv.index("-c") + 1]
    assert script.startswith('mount -t tmpfs -o mode=0700 none "$0" && exec setpriv')
    assert "-sys_admin" in script
    assert "-sys_ptrace" in script
    assert egress.argv[egress.argv.index("-c") + 2] == str(tmp_path)


def _parse(command: click.Command, arguments: list[str]) -> None:
    """Runs click's parser down to the command that would be called."""
    while isinstance(command, click.Group):
        # `atenet router --mode ...` is the command `run` of that group.
        name = "run" if arguments[0].startswith("-") else arguments.pop(0)
        inner = command.get_command(click.Context(command), name)
        assert inner is not None, f"no command {name}"
        command = inner
    context = command.make_context(command.name, list(arguments))
    assert not context.args


def test_the_router_goes_first_and_the_control_plane_last(specs: list[ProcessSpec]) -> None:
    by_rank = sorted(specs, key=lambda spec: spec.stop_rank)
    groups = [
        sorted(spec.name for spec in group)
        for _, group in itertools.groupby(by_rank, key=lambda spec: spec.stop_rank)
    ]
    minter = ["sdsmint"] if any(spec.name == "sdsmint" for spec in specs) else []
    assert groups == [
        ["router"],
        ["worker-1", "worker-2", "worker-3"],
        ["atelet", "egress"],  # actors may have last words
        ["ateapi", "credentials", *minter],
    ]


def test_no_two_processes_serve_on_one_address(specs: list[ProcessSpec]) -> None:
    addresses = [address for spec in specs for address in spec.addresses.values()]
    assert len(addresses) == len(set(addresses))


def test_each_dataplane_serves_what_it_has(specs: list[ProcessSpec]) -> None:
    router = next(spec for spec in specs if spec.name == "router")
    native = {"https", "connect-tls", "http", "connect", "stats", "readiness"}
    # Envoy's clients show a certificate, so nothing is served in the clear; the page of probes is at /metrics' port.
    assert set(router.addresses) == (
        native if "agentgateway" in router.argv else {"https", "connect-tls", "stats"}
    )


def test_workers_outlive_the_grace_of_their_actors(specs: list[ProcessSpec]) -> None:
    worker = next(spec for spec in specs if spec.name == "worker-1")
    grace = float(worker.argv[worker.argv.index("--suspend-grace") + 1].removesuffix("s"))
    assert worker.stop_seconds > grace
