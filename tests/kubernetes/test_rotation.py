"""All authorities rotated in a cluster in which certificates are used all the time, from files that are late."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from atenet.ateapi.mint.certificates import CertificateMint
from atenet.controller.signing import names, rotate
from atenet.controller.signing.keeper import Keeper, parse_bundle
from atenet.controller.signing.rotate import Rotator
from atenet.controller.signing.rotation import Action, Pace, Stage
from atenet.controller.signing.trust import Trust
from atenet.identity import spiffe
from atenet.rpc import mtls_channel
from atenet.sdsmint.pool import read_pool
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from grpc_health.v1 import health_pb2, health_pb2_grpc
from lightkube import AsyncClient

from tests.support.eventually import eventually
from tests.support.kube_identity import SYSTEM, make_pod, prepare, signing
from tests.support.kubelet_identity import Asker, Volume, config_map, secret

# Volumes are up to two seconds late, a process looks at its files about once a second.
PACE = Pace(propagation=timedelta(seconds=6), leaf=timedelta(seconds=4))
POD, SERVICE = names.POD_IDENTITY, names.SERVICE_DNS


@pytest.fixture
async def client(async_admin: AsyncClient) -> AsyncIterator[AsyncClient]:
    await prepare(async_admin)
    async with signing(async_admin):
        yield async_admin


class Renewed:
    """A pod's certificates, asked for anew every second: what a kubelet does in hours."""

    def __init__(self, asker: Asker, pod: str, wanted: dict[str, str]) -> None:
        self._asker, self._pod, self._wanted = asker, pod, wanted
        self._at, self._known = -1.0, {}

    async def __call__(self) -> dict[str, bytes]:
        now = asyncio.get_running_loop().time()
        if now - self._at > 1:
            self._known = {
                file: await self._asker.bundle(authority, self._pod, SYSTEM)
                for file, authority in self._wanted.items()
            }
            self._at = now
        return self._known


@dataclass
class Users:
    """Whoever uses certificates in this test, each as often as it can."""

    failures: list[str] = field(default_factory=list)
    uses: dict[str, int] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def using(self, what: str, use: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        async def always() -> None:
            while True:
                try:
                    await use()
                    self.uses[what] = self.uses.get(what, 0) + 1
                except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test looks for
                    self.failures.append(f"{what}: {error!r}"[:600])
                await asyncio.sleep(0.05)

        task = asyncio.create_task(always())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def volume(
    directory: Path, read: Callable[[], Awaitable[dict[str, bytes]]], late: float
) -> AsyncIterator[Volume]:
    found = Volume(directory, read, late)
    await found.start()
    try:
        yield found
    finally:
        await found.stop()


@contextlib.asynccontextmanager
async def ateapi(home: Path, identity: Volume, trust: Volume) -> AsyncIterator[str]:
    """The real program, on those files; its address."""
    ready, home = home / "ready.json", home
    flags = {
        "--listen": "127.0.0.1:0",
        "--store": home / "ate.db",
        "--snapshots": home / "snapshots",
        "--server-credential": identity / "serving.pem",
        "--client-credential": identity / "identity.pem",
        "--client-roots": trust / "pod-identity.pem",
        "--node-roots": trust / "pod-identity.pem",
        "--ready-file": ready,
    }
    program = "from atenet.ateapi.main import main; main(prog_name='ateapi')"
    words = [str(word) for pair in flags.items() for word in pair]
    with (home / "ateapi.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, "serve", *words, stderr=log
        )
    try:
        await eventually(ready.exists)
        yield json.loads(ready.read_text())["grpc"]
    finally:
        process.terminate()
        await process.wait()


async def test_every_authority_rotates_and_no_handshake_fails(
    client: AsyncClient, tmp_path: Path
) -> None:
    asker, users = Asker(client, client), Users()
    signers = (names.signer(POD), names.signer(SERVICE))
    await make_pod(client, "api-1", "ate-api-server", signers=signers)
    await make_pod(client, "router-1", "atenet-router", signers=signers)
    trust = config_map(client, names.TRUST_MAP, SYSTEM)
    await eventually(lambda: _readable(trust))
    before = await Keeper(client, SYSTEM).bundles()

    async with contextlib.AsyncExitStack() as stack:

        async def mounted(name: str, read: Callable[[], Awaitable[dict[str, bytes]]], late: float):
            return await stack.enter_async_context(volume(tmp_path / name, read, late))

        wanted = {"identity.pem": POD, "serving.pem": SERVICE}
        api_identity = await mounted("api", Renewed(asker, "api-1", wanted), 2.0)
        router = await mounted("router", Renewed(asker, "router-1", {"identity.pem": POD}), 0.0)
        api_trust = await mounted("api-trust", trust, 0.0)
        router_trust = await mounted("router-trust", trust, 2.0)
        address = await stack.enter_async_context(ateapi(tmp_path, api_identity, api_trust))

        async def call() -> None:
            """A connection of its own each time."""
            async with mtls_channel(
                address,
                credential=router / "identity.pem",
                roots=router_trust / "service-dns.pem",
                server_name=spiffe.API_SERVER_NAME,
            ) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=5)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING

        actor_key = await mounted(
            "actor", secret(client, names.authority_secret("actor-identity"), SYSTEM), 1.5
        )
        tls_key = await mounted(
            "tls", secret(client, names.authority_secret("interception"), SYSTEM), 1.5
        )
        mint = CertificateMint(actor_key / "current.pem", actor_key / "current.pem")
        key = ec.generate_private_key(ec.SECP256R1()).public_key()

        async def actor() -> None:
            (der,) = mint.issue(key, spiffe.worker_for_actor_id("team", "one"))
            _verified(x509.load_der_x509_certificate(der), router_trust, "actor-identity")

        async def intercepted() -> None:
            signer = read_pool([tls_key / "current.pem"])
            known = _bundle(router_trust, "interception")
            assert signer.certificate in known, "a minter nobody trusts yet, or no longer"

        for what, use in (("ateapi", call), ("actors", actor), ("interception", intercepted)):
            await stack.enter_async_context(users.using(what, use))

        rotations = [rotate(client, name, pace=PACE) for name in names.ALL_AUTHORITIES]
        over = await asyncio.gather(*rotations)
        # Whatever the last stage broke shows in what is used after it.
        counts = dict(users.uses)
        await eventually(lambda: all(users.uses[k] > n + 20 for k, n in counts.items()))

    assert not users.failures, users.failures[:5]
    assert all(n > 50 for n in users.uses.values()), users.uses
    assert {each.stage for each in over} == {Stage.REST}
    after = await Keeper(client, SYSTEM).bundles()
    for name in names.ALL_AUTHORITIES:
        assert len(after[name]) == 1
        assert not set(after[name]) & set(before[name]), f"{name} is as it was"


async def test_a_rotation_that_is_cut_short_anywhere_goes_on(client: AsyncClient) -> None:
    """Each step by somebody new, who knows nothing but what is in the cluster."""
    pace = Pace(propagation=timedelta(seconds=1), leaf=timedelta(seconds=1))
    name, steps = names.ACTOR_IDENTITY, []
    begin = True
    async with asyncio.timeout(60):
        while True:
            somebody = Rotator(Keeper(client, SYSTEM), Trust(client, SYSTEM))
            taken = await somebody.advance(name, begin=begin, pace=pace)
            begin = False
            if taken.action is not Action.NONE:
                steps.append(taken.action.value)
            elif taken.stage is Stage.REST:
                break
            await asyncio.sleep(0.1)
    assert steps == ["prepare", "publish", "note", "switch", "retire"]


async def test_two_who_rotate_at_once_rotate_once(client: AsyncClient) -> None:
    pace = Pace(propagation=timedelta(seconds=1), leaf=timedelta(seconds=1))
    keeper = Keeper(client, SYSTEM)
    (before,) = (await keeper.bundles())[names.INTERCEPTION]
    seen: list[x509.Certificate] = []

    async def watch() -> None:
        while True:
            for each in (await keeper.bundles())[names.INTERCEPTION]:
                if each not in seen:
                    seen.append(each)
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(rotate(client, names.INTERCEPTION, pace=pace) for _ in range(2)))
    watching.cancel()
    (after,) = (await keeper.bundles())[names.INTERCEPTION]
    assert seen == [before, after]


async def _readable(read: Callable[[], Awaitable[dict[str, bytes]]]) -> bool:
    try:
        return bool(await read())
    except Exception:  # noqa: BLE001 - not there yet
        return False


def _bundle(volume: Volume, name: str) -> tuple[x509.Certificate, ...]:
    return parse_bundle((volume / names.trust_key(name)).read_text(), name)


def _verified(leaf: x509.Certificate, volume: Volume, name: str) -> None:
    for authority in _bundle(volume, name):
        with contextlib.suppress(Exception):
            leaf.verify_directly_issued_by(authority)
            return
    raise AssertionError(f"nobody in the bundle {name} signed this leaf")
