"""The pods of both dataplanes as processes: their own flags, files, account, read-only root; ready, drained."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from atenet.identity import pem

from tests.support.kube_files import KubeFiles
from tests.support.kube_pod import KubePod, running
from tests.unit.setup.rendered import CLIENT, config, named, of_kind, rendered

DATAPLANES = ["envoy", "agentgateway"]
# Nothing answers there: a router is ready all the same, and says 503.
HOSTS = {"api.ate-system.svc": "127.0.0.9"}


@asynccontextmanager
async def pod(
    component: str, dataplane: str, directory: Path, files: KubeFiles, **more: object
) -> AsyncIterator[KubePod]:
    objects = rendered(config(dataplane, **more))
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
    maps["ate-trust"] = {}
    spec = named(objects, "Deployment", component)["spec"]["template"]["spec"]
    async with running(spec, files.volumes(spec, maps), directory / "pod", HOSTS) as started:
        yield started


@pytest.fixture
def files(tmp_path: Path, root: None) -> KubeFiles:
    # Pods' accounts are others than this one, and come by here.
    for each in (tmp_path, *list(tmp_path.parents)[:2]):
        each.chmod(0o755)
    return KubeFiles(tmp_path / "files")


async def request(pod: KubePod, files: KubeFiles, port: int, client: bytes | None) -> bytes:
    """The first line of the answer to a request without an actor; empty: none came."""
    context = ssl.create_default_context(
        cadata=pem.certificate_pem(files.authorities["service-dns"].certificate).decode()
    )
    if client is not None:
        file = pod.directory / "client.pem"
        file.write_bytes(client)
        context.load_cert_chain(file)
    try:
        reader, writer = await asyncio.open_connection(
            sock=await pod.connect(port),
            ssl=context,
            server_hostname="atenet-router.ate-system.svc",
        )
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
    except (ssl.SSLError, ConnectionError):
        return b""
    writer.close()
    return answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("dataplane", DATAPLANES)
async def test_a_router_pod_is_ready_answers_its_clients_and_drains(
    dataplane: str, tmp_path: Path, files: KubeFiles
) -> None:
    async with pod("atenet-router", dataplane, tmp_path, files, drainDelay="1s") as router:
        assert await router.ready()
        known = files.bundle("pod-identity", uri=CLIENT)
        assert b" 404 " in await request(router, files, 8443, known)
        nobody = await request(router, files, 8443, None)
        assert nobody == b"" if dataplane == "envoy" else b" 404 " in nobody
        leaving = asyncio.ensure_future(router.terminate())
        await asyncio.sleep(0.3)  # within the drain's delay: it serves on
        assert b" 404 " in await request(router, files, 8443, known)
        assert not await router.ready()
        assert set((await leaving).values()) == {0}


@pytest.mark.parametrize("dataplane", DATAPLANES)
async def test_an_egress_pod_is_ready_wants_a_tunnels_certificate_and_drains(
    dataplane: str, tmp_path: Path, files: KubeFiles
) -> None:
    async with pod("atenet-egress", dataplane, tmp_path, files, drainDelay="0s") as gateway:
        assert await gateway.ready()
        assert await request(gateway, files, 8443, None) == b""
        assert set((await gateway.terminate()).values()) == {0}


async def test_nobody_but_sdsmint_sees_the_interception_key(
    tmp_path: Path, files: KubeFiles
) -> None:
    async with pod("atenet-egress", "envoy", tmp_path, files, drainDelay="0s") as gateway:
        key = "run/ate/authority/interception/current.pem"
        for name, each in gateway.containers.items():
            there = Path(f"/proc/{each.process.pid}/root/{key}").exists()
            assert there == (name == "sdsmint"), name


@pytest.mark.parametrize("dataplane", DATAPLANES)
async def test_containers_run_as_nobody_and_can_write_nowhere_else(
    dataplane: str, tmp_path: Path, files: KubeFiles
) -> None:
    async with pod("atenet-router", dataplane, tmp_path, files, drainDelay="0s") as router:
        for each in router.containers.values():
            status = Path(f"/proc/{each.process.pid}/status").read_text()
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            assert fields["Uid"].split() == ["65532"] * 4
            assert int(fields["CapEff"], 16) == 0
            assert int(fields["CapBnd"], 16) == 0
            assert fields["NoNewPrivs"] == "1"
