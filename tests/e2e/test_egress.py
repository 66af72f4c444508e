"""What an actor of a local system reaches: everything real, from its policy in the store to the origin."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from atenet.local.settings import DATAPLANES

from tests.support.eventually import eventually
from tests.support.local_system import Ate, ate_home
from tests.support.name_server import NameServer
from tests.support.origins import Origin, echo
from tests.support.pki import Authority
from tests.support.reaching_actor import FETCH, program

TEMPLATE = """
metadata: {{atespace: demo, name: reach}}
containers:
- name: reach
  command: [/usr/bin/python3, /opt/reach/reach.py]
  wakeupProbe: {{httpGet: {{path: /, port: 80}}, timeoutSeconds: 20}}
  mounts: [{{volume: code, path: /opt/reach, readOnly: true}}, {{volume: data, path: /data}}]
volumes:
- {{name: code, hostPath: {{path: {code}}}}}
- {{name: data, durableDir: {{}}}}
snapshotConfig: {{contentScope: DATA}}
"""


@dataclass
class World:
    ate: Ate
    dataplane: str
    where: Path
    plain: Origin
    secure: Origin

    async def told(self, code: str) -> dict[str, Any]:
        """The actor runs it; the call wakes it if it sleeps."""
        words = ("curl", "--fail", "demo/reach", "-X", "POST", "-d", FETCH + code)
        return dict((await self.good(*words)).json)

    async def fetched(self, url: str) -> Any:
        """[status, fields, body], or the error's name."""
        said = await self.told(f"out = fetch({url!r})")
        return said.get("out") or said["error"]

    async def reached(self, url: str) -> bool:
        found = await self.fetched(url)
        return isinstance(found, list) and found[0] == 200

    async def policy(self, text: str) -> None:
        file = self.where / "policy.yaml"
        file.write_text(text)
        await self.good("policy", "set", "demo/reach", "-f", file)

    async def good(self, *words: str | Path) -> Any:
        return await _on_thread(lambda: self.ate.good(*words))


async def _on_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(call)


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=DATAPLANES)
async def world(
    request: pytest.FixtureRequest, root: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    where = tmp_path_factory.mktemp("egress")
    (where / "code").mkdir()
    (where / "code" / "reach.py").write_text(program())
    (where / "code").chmod(0o755)
    where.chmod(0o755)
    authority = Authority.create("origins")
    roots, bundle = where / "origins.pem", where / "origin.pem"
    roots.write_bytes(authority.pem)
    bundle.write_bytes(authority.issue(dns=["secure.test.example"]))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(bundle)
    plain, secure = await Origin.start(echo), await Origin.start(echo, port=443, tls=tls)
    names = await NameServer.start()
    names.names["plain.test.example"] = [[plain.address]]
    names.names["secure.test.example"] = [[secure.address]]
    with ate_home() as ate:
        flags = ("--egress-name-server", names.address, "--egress-allow-cidr", "127.0.0.0/8")
        host_path = ("--allow-host-path", str(where))
        origins = ("--egress-origin-roots", str(roots))
        dataplane = ("--dataplane", request.param)
        up = await _on_thread(
            lambda: ate.up("--workers", "2", *dataplane, *flags, *host_path, *origins)
        )
        assert up.code == 0, up
        made = World(ate, request.param, where, plain, secure)
        template = where / "template.yaml"
        template.write_text(TEMPLATE.format(code=where / "code"))
        await made.good("atespace", "create", "demo")
        await made.good("template", "create", "-f", template)
        await made.good("actor", "create", "demo/reach", "-t", "reach")
        yield made
        await made.good("down")
        assert ate.left_behind() == []
    names.close()
    await plain.close()
    await secure.close()


@pytest.mark.conformance("E-01", "E-03", "E-06", "E-23")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_actor_reaches_what_its_policy_allows_and_only_while_it_does(
    world: World,
) -> None:
    url = "http://plain.test.example/"
    assert await world.fetched(url) == "URLError"
    raw = 'import socket\nsocket.create_connection(("203.0.113.9", 80)).recv(1)'
    # Envoy ends what it refuses, where the native gateway resets it (docs/envoy.md).
    refused = None if world.dataplane == "envoy" else "ConnectionResetError"
    assert (await world.told(raw)).get("error") == refused
    assert world.plain.connections == 0

    await world.policy("rules:\n- http: {hostnames: [plain.test.example]}\n")
    await eventually(lambda: world.reached(url), seconds=20)
    status, _, body = await world.fetched(url)
    assert (status, json.loads(body)["origin"]) == (200, world.plain.address)

    await world.good("actor", "suspend", "demo/reach")
    assert await world.reached(url), "another life, another certificate"

    await world.good("policy", "delete", "demo/reach")

    async def closed() -> bool:
        return await world.fetched(url) == "URLError"

    await eventually(closed, seconds=20)


@pytest.mark.conformance("E-03", "E-08")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_actors_tls_is_opened_without_its_doing_anything(world: World) -> None:
    """The authorities that it trusts come with the sandbox."""
    url = "https://secure.test.example/"
    await world.policy("rules:\n- https: {hostnames: [secure.test.example]}\n")
    await eventually(lambda: world.reached(url), seconds=20)
    assert world.secure.connections >= 1
