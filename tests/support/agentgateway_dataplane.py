"""The native dataplane behind the same face as the Envoy one."""

from pathlib import Path

import grpc

from tests.support.agentgateway_file import LISTENERS, flags, write_file
from tests.support.dataplanes import Router
from tests.support.endpoint import Endpoint
from tests.support.pki import Pki
from tests.support.router_process import RouterProcess, program
from tests.support.router_spec import RouterSpec


class Agentgateway:
    """`atenet agentgateway -f FILE`."""

    name = "agentgateway"
    no_capacity_status = 504
    no_capacity_grpc = "DEADLINE_EXCEEDED"
    broke_off_status = 502
    caches = True
    mute_client_limit = "header_limit"
    worker_connections = 1

    async def start(self, spec: RouterSpec, pki: Pki, directory: Path) -> Router:
        file = write_file(spec, pki, directory)
        command = [program("atenet"), "agentgateway", "-f", str(file)]
        options = ["--bind-address", "127.0.0.1", *flags(spec)]
        process = await RouterProcess.start([*command, *options], directory)
        bound = {name: process.ready["listeners"][name][0] for name in LISTENERS}
        return Router(
            process=process,
            spec=spec,
            web=Endpoint.parse(bound["https"], pki.edge_client),
            connect=Endpoint.parse(bound["https-connect"], pki.edge_client),
            plain=Endpoint.parse(bound["http"]),
            plain_connect=Endpoint.parse(bound["http-connect"]),
            stats=process.ready["stats"],
            readiness=process.ready["readiness"],
            grpc_credentials=grpc.ssl_channel_credentials(pki.services.pem),
        )
