"""The Envoy dataplane behind the same face as the native one."""

from pathlib import Path

import grpc

from tests.support import envoy_flags
from tests.support.dataplanes import Router
from tests.support.endpoint import Endpoint
from tests.support.pki import Pki
from tests.support.router_process import RouterProcess, program
from tests.support.router_spec import RouterSpec


class Envoy:
    """`atenet router --mode=ingress`, with a real Envoy as its child."""

    name = "envoy"
    no_capacity_status = 503
    no_capacity_grpc = "UNAVAILABLE"
    broke_off_status = 503
    caches = False
    # Envoy's limit for heads begins with their first byte.
    mute_client_limit = "client_idle"
    worker_connections = envoy_flags.CONCURRENCY

    async def start(self, spec: RouterSpec, pki: Pki, directory: Path, **changed: object) -> Router:
        words = envoy_flags.flags(spec, pki, directory, **changed)
        process = await RouterProcess.start([program("atenet"), "router", *words], directory)
        bound = process.ready["listeners"]
        key_and_chain = pki.edge_credential.read_bytes()
        return Router(
            process=process,
            spec=spec,
            web=Endpoint.parse(bound["ingress"][0], pki.known_client),
            connect=Endpoint.parse(bound["connect"][0], pki.known_client),
            plain=None,
            plain_connect=None,
            stats=process.ready["stats"],
            readiness=process.ready["readiness"],
            grpc_credentials=grpc.ssl_channel_credentials(
                pki.services.pem, private_key=key_and_chain, certificate_chain=key_and_chain
            ),
        )
