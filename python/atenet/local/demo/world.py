"""The demo's own system: started beside whatever runs, spoken to as people's programs would."""

from __future__ import annotations

import dataclasses
import http.client
import ipaddress
import re
import shutil
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from atenet.cli.control import DEADLINE_SECONDS, calling, control
from atenet.cli.home import address_of
from atenet.client.request import (
    ACTOR_HEADER,
    SERVER_NAME,
    ClientTls,
    Exchange,
    RouterRequest,
    exchange,
)
from atenet.local.demo.origins import Origins, running_origins
from atenet.local.demo.software import ATESPACE, Software
from atenet.local.ports import beside_others
from atenet.local.settings import LocalSettings
from atenet.local.system import LocalSystem
from atenet.proto import ateapi_pb2 as pb
from atenet.proto.ateapi_pb2_grpc import ControlStub

__all__ = ["FILLERS", "Answer", "World", "actor_headers", "running_world"]

_TIMEOUT_SECONDS = 60.0
_WORKERS, _SLOTS = 2, 2
# As many as fill every slot.
FILLERS = tuple(f"filler-{number}" for number in range(_WORKERS * _SLOTS))
# actor -> template
_ACTORS = {
    "counter": "counter",
    "burst": "counter",
    "httpbin": "httpbin",
    "datasette": "datasette",
    "prober": "prober",
    **dict.fromkeys(FILLERS, "counter"),
}


# The same for those that need memory to be kept.
_REMEMBERING = {
    "remembers": "memory",
    "notebook": "notebook",
    "notebook-2": "notebook",
    "notebook-boot": "notebook-boot",
}


class Answer:
    """A whole answer."""

    def __init__(self, given: Exchange) -> None:
        with given:
            self.status = given.status
            self.headers = {name.lower(): value for name, value in given.headers}
            self.body = given.read()


class World:
    """A running system, its control plane and its router."""

    def __init__(
        self, system: LocalSystem, ready: dict[str, Any], stub: ControlStub, origins: Origins
    ) -> None:
        self.system = system
        self.origins = origins
        self.ready = ready
        self.stub = stub
        self.router = address_of(ready, "router", "https")
        self.dataplane = str(ready["settings"]["dataplane"])
        self.keeps_memory = ready["settings"]["sandbox"] == "gvisor"
        self.tls = ClientTls.of(system.layout)
        self._metrics = f"http://{address_of(ready, 'ateapi', 'stats')}/metrics"

    # ------------------------------------------------------------ requests

    def request(self, actor: str, path: str = "/", method: str = "GET", **more: Any) -> Answer:
        """One request over HTTPS on a connection of its own. `actor` is a name in the demo's atespace."""
        wanted = RouterRequest(actor=f"{ATESPACE}/{actor}", path=path, method=method, **more)
        return Answer(exchange(self.router, wanted, self.tls, _TIMEOUT_SECONDS))

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPSConnection]:
        """A kept-alive HTTPS connection to the router."""
        context = self.tls.context()
        host, _, port = self.router.rpartition(":")
        opened = _NamedConnection(host, int(port), context=context, timeout=_TIMEOUT_SECONDS)
        try:
            yield opened
        finally:
            opened.close()

    # ------------------------------------------------------------ control plane

    def resume(self, name: str) -> str:
        """Wakes the actor and returns the worker that hosts it."""
        with calling("ateapi"):
            asked = pb.ResumeActorRequest(actor=_ref(name))
            actor = self.stub.ResumeActor(asked, timeout=DEADLINE_SECONDS).actor
        return str(actor.status.worker_assignment.worker_pod)

    def suspend(self, name: str) -> None:
        with calling("ateapi"):
            asked = pb.SuspendActorRequest(actor=_ref(name))
            self.stub.SuspendActor(asked, timeout=DEADLINE_SECONDS)

    def set_policy(self, name: str, policy: pb.EgressPolicy) -> None:
        """Gives an actor that has none its egress policy."""
        policy.metadata.CopyFrom(pb.ResourceMetadata(atespace=ATESPACE, name="default"))
        asked = pb.CreateActorEgressPolicyRequest(actor=_ref(name), egress_policy=policy)
        with calling("ateapi"):
            self.stub.CreateActorEgressPolicy(asked, timeout=DEADLINE_SECONDS)

    def worker_of(self, name: str) -> str:
        """The worker that hosts the actor; empty when it sleeps."""
        with calling("ateapi"):
            asked = pb.GetActorRequest(actor=_ref(name))
            actor = self.stub.GetActor(asked, timeout=DEADLINE_SECONDS)
        return str(actor.status.worker_assignment.worker_pod)

    # ------------------------------------------------------------ what the control plane counts

    def calls(self, method: str = "ResumeActor") -> int:
        """How many calls of this method ateapi has answered."""
        return int(sum(self._samples("ateapi_calls_total", f'method="{method}"')))

    def resumes(self) -> int:
        """How many resume workflows have run."""
        return int(sum(self._samples("ateapi_resumes_total")))

    def phases(self) -> dict[str, float]:
        """Milliseconds spent in each phase of all resumes so far."""
        found = re.findall(
            r'^ateapi_resume_phase_seconds_sum\{phase="(\w+)"\} (\S+)$', self._text(), re.MULTILINE
        )
        return {phase: float(seconds) * 1000 for phase, seconds in found}

    def _samples(self, name: str, label: str = "") -> Iterator[float]:
        for line in self._text().splitlines():
            if line.startswith(name) and label in line:
                yield float(line.rsplit(" ", 1)[1])

    def _text(self) -> str:
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:  # noqa: S310 - our own http address
            return str(answer.read().decode())


class _NamedConnection(http.client.HTTPSConnection):
    """Dials an address, checks the certificate for the router's name."""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(self.sock, server_hostname=SERVER_NAME)


def _ref(name: str) -> pb.ObjectRef:
    return pb.ObjectRef(atespace=ATESPACE, name=name)


def actor_headers(name: str) -> dict[str, str]:
    return {ACTOR_HEADER: f"{ATESPACE}/{name}"}


@contextmanager
def running_world(software: Software, *, dataplane: str, keep: bool) -> Iterator[World]:
    """Starts a system of two workers with two slots each; takes everything away at the end."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="ate-demo-"))
        if not keep:
            stack.callback(shutil.rmtree, home, ignore_errors=True)
        wanted = LocalSettings(
            dataplane=dataplane,
            workers=_WORKERS,
            slots=_SLOTS,
            allow_host_path=software.host_paths,
        )
        settings = beside_others(wanted)
        origins = stack.enter_context(running_origins(_beside(settings.address), home))
        settings = dataclasses.replace(
            settings,
            egress_name_server=(origins.name_server,),
            egress_allow_cidr=(origins.address,),
            egress_origin_roots=origins.roots,
        )
        system = LocalSystem(home)
        stack.callback(lambda: list(system.stop()))
        ready = list(system.start(settings))[-1]
        stub = stack.enter_context(control(home))
        world = World(system, ready, stub, origins)
        _furnish(world, software)
        yield world


def _beside(address: str) -> str:
    """The address before it: workers have the first ones of this network, control plane and router the last."""
    return str(ipaddress.ip_address(address) - 1)


def _furnish(world: World, software: Software) -> None:
    stub, memory = world.stub, world.keeps_memory
    space = pb.Atespace(metadata=pb.ResourceMetadata(name=ATESPACE))
    stub.CreateAtespace(pb.CreateAtespaceRequest(atespace=space), timeout=DEADLINE_SECONDS)
    for template in (*software.templates(), *(software.remembering() if memory else ())):
        asked = pb.CreateActorTemplateRequest(actor_template=template)
        stub.CreateActorTemplate(asked, timeout=DEADLINE_SECONDS)
    for name, source in (_ACTORS | (_REMEMBERING if memory else {})).items():
        actor = pb.Actor(
            metadata=pb.ResourceMetadata(atespace=ATESPACE, name=name),
            actor_template=_ref(source),
        )
        stub.CreateActor(pb.CreateActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
