"""The pods of ateapi and atelet as processes, as their manifests say, and what they are to each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
import grpc.aio
import pytest
from atenet.identity import pem, spiffe
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import atelet_pb2 as node_pb
from atenet.proto import atelet_pb2_grpc as node_grpc
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto.ateapi_pb2_grpc import ControlStub
from atenet.proto.egresssupport_pb2_grpc import EgressSupportStub

from tests.support.control_plane import actor, code_of, ref, template
from tests.support.kube_files import KubeFiles
from tests.support.kube_pod import KubePod, running
from tests.support.kube_service import KubeService, kube_service
from tests.support.kube_way import Address, Target
from tests.support.postgres import PostgresServer
from tests.unit.setup.rendered import config, named, of_kind, rendered

NODE = "node-1.example"
API, DATABASE, EACH, AGENT = "127.0.0.9", "127.0.0.10", "127.0.0.11", "127.0.0.12"
HOSTS = {
    "api.ate-system.svc": API,
    "db.example": DATABASE,
    "atenet-egress-each.ate-system.svc": EACH,
}
# What the cluster looks up for `valueFrom`.
LOOKED_UP = {
    "NODE_NAME": NODE,
    "POD_IP": AGENT,
    "AWS_ACCESS_KEY_ID": "an id",
    "AWS_SECRET_ACCESS_KEY": "a key",
    "AWS_SESSION_TOKEN": "a token",
}
GIVEN: dict[str, Any] = {
    "snapshotsSecret": "ate-bucket",
    "snapshotsRegion": "eu-central-1",
    "snapshotsEndpoint": "https://minio.example:9000",
    "drainDelay": "0s",
}


@dataclass
class Cluster:
    """Pods as they are rendered, each behind the Service that others know it by."""

    directory: Path
    files: KubeFiles
    database: str
    stack: AsyncExitStack
    api: KubeService
    each_gateway: KubeService
    agent: KubeService

    async def start(self, name: str, service: KubeService) -> KubePod:
        objects = rendered(config("agentgateway", **GIVEN))
        kind = "DaemonSet" if name == "atelet" else "Deployment"
        spec = named(objects, kind, name)["spec"]["template"]["spec"]
        maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
        volumes = self.files.volumes(spec, {**maps, "ate-trust": {}})
        volumes |= self._more(spec)
        ways = self._ways() if name == "ateapi" else {(API, 443): self.api.address}
        place = self.directory / f"{name}-pod"
        pod = await self.stack.enter_async_context(
            running(spec, volumes, place, HOSTS, ways, LOOKED_UP)
        )
        service.add(pod)
        return pod

    def _ways(self) -> dict[Address, Target]:
        """Of the control plane."""
        return {
            (EACH, 7448): self.each_gateway.address,
            (AGENT, 7444): self.agent.address,
            (DATABASE, 5432): self._socket,
        }

    def _more(self, spec: dict[str, Any]) -> dict[str, Path]:
        """Secrets of others, and directories of the node."""
        found = {}
        for volume in spec["volumes"]:
            if volume["name"] == "store":
                url = {"url": self._url.encode()}
                found["store"] = self.files.write(spec, "store", url)
            if "hostPath" in volume:
                found[volume["name"]] = self.on_node(volume["name"])
        return found

    def on_node(self, name: str) -> Path:
        directory = self.directory / "node" / name
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    @property
    def _url(self) -> str:
        """The server's own, by the name that the cluster has for it."""
        parts = urlsplit(self.database)
        return f"postgresql://{parts.netloc.rpartition('@')[0]}@db.example{parts.path}"

    @property
    def _socket(self) -> Path:
        (directory,) = parse_qs(urlsplit(self.database).query)["host"]
        return Path(directory) / ".s.PGSQL.5432"

    async def channel(
        self, service: KubeService, authority: str, name: str, who: str
    ) -> grpc.aio.Channel:
        """As the bearer of this id."""
        bundle = self.files.bundle("pod-identity", uri=who, dns=(spiffe.pod_dns_name(who),))
        roots = pem.certificate_pem(self.files.authorities[authority].certificate)
        host, port = service.address
        return await self.stack.enter_async_context(
            grpc.aio.secure_channel(
                f"{host}:{port}",
                grpc.ssl_channel_credentials(roots, bundle, bundle),
                options=[("grpc.ssl_target_name_override", name)],
            )
        )

    async def as_person(self) -> grpc.aio.Channel:
        return await self.channel(self.api, "service-dns", spiffe.API_SERVER_NAME, spiffe.CLI_ID)


@pytest.fixture
async def cluster(tmp_path: Path, root: None, postgres: PostgresServer) -> AsyncIterator[Cluster]:
    # Pods' accounts are others than this one, and come by here.
    for each in (tmp_path, *list(tmp_path.parents)[:2]):
        each.chmod(0o755)
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(kube_service(port, late=0))
            for port in (7443, 7448, 7444)
        ]
        files = KubeFiles(tmp_path / "files", node=NODE)
        yield Cluster(tmp_path, files, postgres.database(), stack, *services)


def variables(pod: KubePod, name: str) -> dict[str, str]:
    text = Path(f"/proc/{pod.containers[name].process.pid}/environ").read_text()
    return dict(each.split("=", 1) for each in text.split("\0") if each)


async def test_ateapi_migrates_serves_what_it_is_told_to_and_drains(cluster: Cluster) -> None:
    pod = await cluster.start("ateapi", cluster.api)
    (container,) = pod.spec["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert await pod.passes(container, probe), probe
    control = ControlStub(await cluster.as_person())
    made = pb.Atespace(metadata=pb.ResourceMetadata(name="team"))
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=made))
    assert (
        variables(pod, "ateapi").items()
        >= {
            "AWS_ACCESS_KEY_ID": "an id",
            "AWS_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL": "https://minio.example:9000",
        }.items()
    )
    assert "s3cr3t" not in pod.containers["ateapi"].log
    assert await pod.terminate() == {"ateapi": 0}


async def test_an_agent_speaks_for_its_workers_at_the_control_plane_and_answers_it_alone(
    cluster: Cluster,
) -> None:
    await cluster.start("ateapi", cluster.api)
    agent = await cluster.start("atelet", cluster.agent)
    container = agent.spec["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert await agent.passes(container, probe), probe
    # As a worker on the node has it; the path on this machine is too long for a socket.
    inside = Path(f"/proc/{agent.containers['atelet'].process.pid}/root")
    socket = inside / "run/ate/node/atelet.sock"
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        asked = node_pb.RegisterWorkerRequest(
            worker=pb.Worker(
                metadata=pb.ResourceMetadata(name="general-x"),
                worker_namespace="ate-workers",
                worker_pool="general",
                epoch=1,
                ips=["10.244.0.9"],
            ),
            capacity=pb.WorkerResources(actors=4),
            socket_path="/run/ate/node/general-x.sock",
        )
        await node_grpc.WorkerSupportStub(channel).RegisterWorker(asked, timeout=30)
    control = ControlStub(await cluster.as_person())
    (worker,) = (await control.ListWorkers(pb.ListWorkersRequest())).workers
    assert (worker.node_name, worker.node_endpoint) == (NODE, f"{AGENT}:7444")
    name = spiffe.pod_dns_name(spiffe.ATELET_ID)
    asked_for = node_pb.LookUpWorkerRequest(worker="general-x", worker_epoch=1)
    for who, code in ((spiffe.API_ID, "OK"), (spiffe.ROUTER_ID, "PERMISSION_DENIED")):
        there = await cluster.channel(cluster.agent, "pod-identity", name, who)
        call = node_grpc.AteletStub(there).LookUpWorker(asked_for, timeout=30)
        found = "OK" if code == "OK" and (await call) else (await code_of(call))[0]
        assert found == code, who
    assert variables(agent, "atelet")["AWS_SECRET_ACCESS_KEY"] == "a key"
    assert await agent.terminate() == {"atelet": 0}


async def test_the_control_plane_finds_every_gateway_for_what_it_denied(cluster: Cluster) -> None:
    await cluster.start("ateapi", cluster.api)
    await cluster.start("atenet-egress", cluster.each_gateway)
    channel = await cluster.as_person()
    control, team = ControlStub(channel), pb.ResourceMetadata(name="team")
    await control.CreateAtespace(pb.CreateAtespaceRequest(atespace=pb.Atespace(metadata=team)))
    tpl = template("team")
    await control.CreateActorTemplate(pb.CreateActorTemplateRequest(actor_template=tpl))
    await control.CreateActor(pb.CreateActorRequest(actor=actor("agent", "team")))
    asked = egress_pb.ListActorEgressDenialsRequest(actor=ref("agent", "team"))
    answer = await EgressSupportStub(channel).ListActorEgressDenials(asked, timeout=30)
    assert list(answer.unanswered) == []
    assert cluster.each_gateway.sent
    assert list(answer.denials) == []
