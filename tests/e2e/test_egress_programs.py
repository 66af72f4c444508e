"""Programs that nobody here wrote, in a sandbox: each fetches through interception without being told anything."""

import asyncio
import ssl
import sysconfig
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from atenet.worker.egress.sandbox_trust import BUNDLE, VARIABLES

from tests.support.eventually import eventually
from tests.support.local_system import Ate, ate_home
from tests.support.name_server import NameServer
from tests.support.origins import Origin
from tests.support.pki import Authority
from tests.support.reaching_actor import program
from tests.support.web_programs import PROGRAMS, files, site

HOST = "site.test.example"
TEMPLATE = """
metadata: {{atespace: demo, name: reach}}
containers:
- name: reach
  command: [/usr/bin/python3, /opt/reach/reach.py]
  env: [{{name: PIP_CERT, value: /nowhere}}]
  wakeupProbe: {{httpGet: {{path: /, port: 80}}, timeoutSeconds: 20}}
  mounts:
  - {{volume: code, path: /opt/reach, readOnly: true}}
  - {{volume: packages, path: /opt/packages, readOnly: true}}
volumes:
- {{name: code, hostPath: {{path: {code}}}}}
- {{name: packages, hostPath: {{path: {packages}}}}}
sandboxConfig: {{sandboxClass: process}}
"""

RUN = """
import os, subprocess
def run(words, **variables):
    env = {{**os.environ, **variables}}
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60)
    return [done.returncode, done.stdout + done.stderr]
out = run({words!r}, **{variables!r})
"""


@dataclass
class World:
    ate: Ate
    origin: Origin

    async def told(self, code: str) -> Any:
        words = ("curl", "--fail", "demo/reach", "-X", "POST", "-d", code)
        said = (await asyncio.to_thread(lambda: self.ate.good(*words))).json
        assert "out" in said, said
        return said["out"]

    async def run(self, words: list[str], **variables: str) -> tuple[int, str]:
        status, said = await self.told(RUN.format(words=words, variables=variables))
        return status, said


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(root: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    where = tmp_path_factory.mktemp("programs")
    code, packages = where / "code", Path(sysconfig.get_path("purelib"))
    code.mkdir()
    (code / "reach.py").write_text(program())
    for directory in (code, where):
        directory.chmod(0o755)
    authority = Authority.create("origins")
    roots, bundle = where / "origins.pem", where / "origin.pem"
    roots.write_bytes(authority.pem)
    bundle.write_bytes(authority.issue(dns=[HOST]))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(bundle)
    content = await asyncio.to_thread(site, tmp_path_factory.mktemp("site"))
    origin = await Origin.start(files(content), port=443, tls=tls)
    names = await NameServer.start()
    names.names[HOST] = [[origin.address]]
    with ate_home() as ate:
        flags = ["--egress-name-server", names.address, "--egress-allow-cidr", origin.address]
        flags += ["--egress-origin-roots", str(roots), "--workers", "1"]
        flags += ["--allow-host-path", str(code), "--allow-host-path", str(packages)]
        up = await asyncio.to_thread(ate.up, *flags)
        assert up.code == 0, up
        (where / "template.yaml").write_text(TEMPLATE.format(code=code, packages=packages))
        (where / "policy.yaml").write_text(f"rules:\n- https: {{hostnames: [{HOST}]}}\n")
        for words in (
            ("atespace", "create", "demo"),
            ("template", "create", "-f", where / "template.yaml"),
            ("actor", "create", "demo/reach", "-t", "reach"),
            ("policy", "set", "demo/reach", "-f", where / "policy.yaml"),
        ):
            await asyncio.to_thread(ate.good, *words)
        made = World(ate, origin)

        async def known() -> bool:
            return (await made.run(["getent", "hosts", HOST]))[0] == 0

        await eventually(known, seconds=20)
        yield made
        await asyncio.to_thread(ate.good, "down")
    names.close()
    await origin.close()


# B152
@pytest.mark.conformance("E-08", "E-20")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_in_a_sandbox_fetches_through_interception(world: World, name: str) -> None:
    words = PROGRAMS[name].words(
        host=HOST,
        port="443",
        url=f"https://{HOST}",
        bundle=BUNDLE,
        scratch="/tmp/downloads",
        python="/usr/bin/python3",
    )
    # The template has set PIP_CERT itself, and that stays: pip is given the bundle here.
    given = {"PYTHONPATH": "/opt/packages"} | ({"PIP_CERT": BUNDLE} if name == "pip" else {})
    status, said = await world.run(words, **given)
    assert status == 0, said
    assert PROGRAMS[name].says in said


@pytest.mark.conformance("E-08")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_template_has_the_last_word_on_each_variable(world: World) -> None:
    environment = await world.told("import os\nout = dict(os.environ)")
    assert environment["PIP_CERT"] == "/nowhere"
    others = {key: value for key, value in VARIABLES.items() if key != "PIP_CERT"}
    assert others.items() <= environment.items()


@pytest.mark.conformance("E-20")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_bundle_cannot_be_written_and_holds_the_public_roots(world: World) -> None:
    told = f"""
try:
    open({BUNDLE!r}, "a")
    written = True
except OSError:
    written = False
out = [written, open({BUNDLE!r}).read().count("BEGIN CERTIFICATE")]
"""
    written, count = await world.told(told)
    assert not written
    assert count > 50


@pytest.mark.conformance("E-22", "E-23")
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_was_denied_is_told_and_what_is_suggested_lets_it_through(
    world: World, tmp_path: Path
) -> None:
    other, asked = "other.test.example", ["getent", "hosts", "other.test.example"]
    assert (await world.run(asked))[0] != 0
    refused = await world.run(
        ["curl", "-sS", "--resolve", f"{HOST}:80:203.0.113.9", f"http://{HOST}/"]
    )
    assert "no egress rule covers this host" in refused[1]

    ate = world.ate
    told = (await asyncio.to_thread(ate.good, "policy", "denials", "demo/reach", "-o", "json")).json
    known = {(entry["reason"], entry["host"], entry["kind"], entry["port"]) for entry in told}
    assert ("name-denied", other, None, None) in known
    assert ("no-egress-rule", HOST, "http", 80) in known
    table = (await asyncio.to_thread(ate.good, "policy", "denials", "demo/reach")).out
    assert other in table

    proposed = (await asyncio.to_thread(ate.good, "policy", "suggest", "demo/reach")).out
    assert f"https {other} port 443 (only its name was asked for" in proposed
    file = tmp_path / "policy.yaml"
    file.write_text(proposed)
    await asyncio.to_thread(ate.good, "policy", "set", "demo/reach", "-f", file)

    async def passes() -> bool:
        return (await world.run(asked))[0] == 0

    await eventually(passes, seconds=20)
    again = (await asyncio.to_thread(ate.good, "policy", "suggest", "demo/reach")).out
    assert again.startswith("# Nothing to add.")


@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
async def test_denials_of_an_actor_that_is_not_there_are_an_error(world: World) -> None:
    for command in ("denials", "suggest"):
        ran = await asyncio.to_thread(world.ate, "policy", command, "demo/nobody")
        assert ran.code == 3, ran
