"""All authorities rotated in a cluster in which certificates are used all the time, from files that are late."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from atenet.ateapi.mint.certificates import CertificateMint
from atenet.controller.signing import names
from atenet.controller.signing.keeper import Keeper, parse_bundle
from atenet.controller.signing.rotate import Rotator, rotate
from atenet.controller.signing.rotation import Action, Pace, Stage
from atenet.controller.signing.trust import Trust
from atenet.identity import spiffe
from atenet.identity.credential import issued_by
from atenet.rpc import mtls_channel
from atenet.sdsmint.pool import read_pool
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from grpc_health.v1 import health_pb2, health_pb2_grpc
from lightkube import AsyncClient

from tests.support.eventually import eventually
from tests.support.kube_identity import SYSTEM, make_pod, prepare, signing
from tests.support.kubelet_identity import Asker, Volume, config_map, secret

# How late a volume is; a process looks at its files about once a second.
LATE = 5.0
PACE = Pace(propagation=timedelta(seconds=LATE + 3), leaf=timedelta(seconds=4))
POD, SERVICE = names.POD_IDENTITY, names.SERVICE_DNS
Read = Callable[[], Awaitable[dict[str, bytes]]]
_KEY = ec.generate_private_key(ec.SECP256R1()).public_key()


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
                await asyncio.sleep(0.2)

        task = asyncio.create_task(always())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def volume(directory: Path, read: Read, late: float) -> AsyncIterator[Volume]:
    found = Volume(directory, read, late)
    await found.start()
    try:
        yield found
    finally:
        await found.stop()


@contextlib.asynccontextmanager
async def ateapi(home: Path, identity: Volume, trust: Volume) -> AsyncIterator[str]:
    """The real program, on those files; its address."""
    home.mkdir()
    ready = home / "ready.json"
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


# A minute by itself, and more on a machine that does other things as well.
@pytest.mark.timeout(300)
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

        async def mounted(name: str, read: Read, late: float) -> Volume:
            return await stack.enter_async_context(volume(tmp_path / name, read, late))

        # Each pair is early with one and late with the other: one shows a new signer's leaf to whoever
        # knows it last, one an old signer's to whoever forgets it first.
        early = await mounted("early-trust", trust, 0)
        late = await mounted("late-trust", trust, LATE)
        wanted = {"identity.pem": POD, "serving.pem": SERVICE}
        for number, (behind, bundle) in enumerate([(0.0, late), (LATE, early)]):
            home = tmp_path / f"ateapi-{number}"
            api = await mounted(f"api-{number}", Renewed(asker, "api-1", wanted), behind)
            address = await stack.enter_async_context(ateapi(home, api, bundle))
            for other, (lag, known) in enumerate([(0.0, late), (LATE, early)]):
                renewed = Renewed(asker, "router-1", {"identity.pem": POD})
                router = await mounted(f"router-{number}-{other}", renewed, lag)
                call = partial(_call, address, router, known)
                await stack.enter_async_context(users.using(f"ateapi {number} {other}", call))
            actors = secret(client, names.authority_secret("actor-identity"), SYSTEM)
            key = await mounted(f"actor-{number}", actors, behind)
            mint = CertificateMint(key / "current.pem", key / "current.pem")
            actor = partial(_mint, mint, bundle)
            await stack.enter_async_context(users.using(f"actors {number}", actor))
            opened = secret(client, names.authority_secret("interception"), SYSTEM)
            key = await mounted(f"tls-{number}", opened, behind)
            opening = partial(_intercept, key / "current.pem", bundle)
            await stack.enter_async_context(users.using(f"interception {number}", opening))

        rotations = [rotate(client, name, pace=PACE, every=0.2) for name in names.ALL_AUTHORITIES]
        over = await asyncio.gather(*rotations)
        # Whatever the last stage broke shows in what is used after it.
        counts = dict(users.uses)
        await eventually(lambda: all(users.uses[k] > n + 5 for k, n in counts.items()))

    assert not users.failures, users.failures[:5]
    assert all(n > 50 for n in users.uses.values()), users.uses
    assert {each.stage for each in over} == {Stage.REST}
    after = await Keeper(client, SYSTEM).bundles()
    for name in names.ALL_AUTHORITIES:
        assert len(after[name]) == 1
        assert not set(after[name]) & set(before[name]), f"{name} is as it was"


async def _call(address: str, identity: Volume, trust: Volume) -> None:
    """A connection of its own each time."""
    async with mtls_channel(
        address,
        credential=identity / "identity.pem",
        roots=trust / "service-dns.pem",
        server_name=spiffe.API_SERVER_NAME,
    ) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def _mint(mint: CertificateMint, trust: Volume) -> None:
    (der,) = mint.issue(_KEY, spiffe.worker_for_actor_id("team", "one"))
    leaf = x509.load_der_x509_certificate(der)
    known = _bundle(trust, names.ACTOR_IDENTITY)
    assert any(issued_by(leaf, each) for each in known), "signed by nobody in the bundle"


async def _intercept(key: Path, trust: Volume) -> None:
    signer = read_pool([key])
    known = _bundle(trust, names.INTERCEPTION)
    assert signer.certificate in known, "a minter nobody trusts yet, or no longer"


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


async def _readable(read: Read) -> bool:
    try:
        return bool(await read())
    except Exception:  # noqa: BLE001 - not there yet
        return False


def _bundle(volume: Volume, name: str) -> tuple[x509.Certificate, ...]:
    return parse_bundle((volume / names.trust_key(name)).read_text(), name)
