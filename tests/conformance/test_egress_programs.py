"""Programs that nobody here wrote, through interception: each takes the leaf when it is told whom to trust."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from atenet.worker.egress.sandbox_trust import BUNDLE, MOUNT, VARIABLES, SandboxTrust

from tests.support.egress_stage import EgressStage, https
from tests.support.web_programs import PROGRAMS, files, site

LIMIT = 60.0


async def run(words: list[str], hosts: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Runs a program for which /etc/hosts is this file; returns how it ended and what it said."""
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "sh", "-c", script, str(hosts), *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(hosts.parent), **variables},
    )
    async with asyncio.timeout(LIMIT):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode(errors="replace")


# B152
@pytest.mark.conformance("E-20", "E-08")
@pytest.mark.parametrize("told", [True, False], ids=["told whom to trust", "not told"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_program_takes_the_leaf_if_it_is_told_whom_to_trust(
    egress: EgressStage, tmp_path: Path, name: str, told: bool
) -> None:
    handler = files(await asyncio.to_thread(site, tmp_path))
    host, origin = await egress.secure_web(handler)
    port = await egress.capture(egress.actor(https(host, ports=[origin.port])), origin.port)
    trust = SandboxTrust(
        tmp_path / "trust",
        egress.pki.pki.write("interception-roots.pem", egress.pki.interception.pem),
        egress.pki.origin_roots,
    )
    await asyncio.to_thread(trust.write)
    here = {name: path.replace(MOUNT, str(trust.directory)) for name, path in VARIABLES.items()}
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 {host}\n")
    bundle = BUNDLE.replace(MOUNT, str(trust.directory)) if told else str(egress.pki.origin_roots)
    words = PROGRAMS[name].words(
        host=host,
        port=str(port),
        url=f"https://{host}:{port}",
        bundle=bundle,
        scratch=str(tmp_path / "downloads"),
        python=sys.executable,
    )
    status, said = await run(words, hosts, here if told else {})
    if told:
        assert status == 0, said
        assert PROGRAMS[name].says in said
    else:
        assert status != 0, said
        assert origin.exchanges == []
