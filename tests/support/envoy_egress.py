"""The egress gateway on Envoy, behind the same face as the native one."""

import shutil
from pathlib import Path

from atenet.local.hidden import without

from tests.support.egress_gateway import EgressGateway, EgressSpec, resolving
from tests.support.egress_pki import EgressPki
from tests.support.endpoint import Endpoint
from tests.support.pki import API_NAME
from tests.support.router_process import RouterProcess, program

CONCURRENCY = 2


class EnvoyEgress:
    """`atenet router --mode=egress` with a real Envoy as its child, and `atenet sdsmint` beside it."""

    name = "envoy"

    async def start(
        self,
        spec: EgressSpec,
        pki: EgressPki,
        directory: Path,
        *,
        hidden: Path | None = None,
        **changed: object,
    ) -> EgressGateway:
        """`hidden`: a directory with the interception key; the gateway's processes have no way to it."""
        helpers = []
        if spec.intercepting:
            key = pki.interception_ca
            if hidden is not None:
                key = Path(shutil.copy(key, hidden / "interception.pem"))
            helpers.append(await start_mint(key, directory))
        command = [program("atenet"), "router", *flags(spec, pki, directory, **changed)]
        if hidden is not None:
            command = [*without(hidden), *command]
        if not spec.own_resolver:
            command = resolving(spec.name_server, command, directory)
        try:
            process = await RouterProcess.start(command, directory)
        except BaseException:
            for helper in helpers:
                await helper.kill()
            raise
        ready = process.ready
        bound = Endpoint.parse(ready["listeners"]["tunnels"][0])
        pages = {name: ready[name] for name in ("stats", "readiness", "status", "envoy_admin")}
        return EgressGateway(
            process, bound.host, bound.port, ready["stats"], ready["denials"], tuple(helpers), pages
        )


def socket_of(directory: Path) -> Path:
    return directory / "sds.sock"


async def start_mint(key: Path, directory: Path) -> RouterProcess:
    beside = directory / "sdsmint"
    beside.mkdir()
    words = ["--uds-path", str(socket_of(directory)), "--ca-pool-path", str(key)]
    return await RouterProcess.start([program("atenet"), "sdsmint", *words], beside)


def flags(spec: EgressSpec, pki: EgressPki, directory: Path, **changed: object) -> list[str]:
    """Port 0 everywhere. `changed`: flags as `drain_delay=...`."""
    given: dict[str, object] = {
        "--mode": "egress",
        "--run-envoy": "true",
        "--envoy-concurrency": CONCURRENCY,
        "--state-dir": directory,
        "--listen-address": "127.0.0.1",
        **dict.fromkeys(("--port-tunnels", "--port-xds", "--port-extproc", "--status-port"), 0),
        "--metrics-listen-addr": "127.0.0.1:0",
        "--envoy-admin-address": "127.0.0.1:0",
        "--ateapi-address": spec.api_address,
        "--ateapi-server-name": API_NAME,
        "--ateapi-ca-file": pki.pki.service_roots,
        "--ateapi-client-cert": pki.gateway_pod,
        "--envoy-cert-path": pki.gateway,
        "--actor-identity-ca-file": pki.actor_roots,
        "--origin-ca-file": pki.origin_roots,
        "--credential-provider-name": "secrets.example",
        "--credential-provider-address": spec.provider_address,
        "--credential-provider-server-name": API_NAME,
        "--egress-sniff-timeout": spec.sniff,
        "--egress-recheck-interval": spec.recheck,
        "--egress-policy-cache-ttl": spec.policy_ttl,
        "--extproc-socket": directory / "decisions.sock",
        "--drain-delay": 0,
        "--drain-complete-file": directory / "drained",
    }
    if spec.intercepting:
        given["--sdsmint-socket"] = socket_of(directory)
    if spec.own_resolver:
        given["--egress-name-server"] = spec.name_server
    if spec.additional:
        given["--experimental-additional-egress-extproc-service"] = spec.additional
    words = [str(word) for pair in given.items() for word in pair]
    words += [f"--egress-allow-cidr={cidr}" for cidr in spec.allowed]
    # Where a flag stands twice, the last one counts.
    last = [f"--{name.replace('_', '-')}={value}" for name, value in changed.items()]
    return [*words, *pki.denials_flags(), *last]
