"""The Envoy dataplane's command line from a spec."""

from pathlib import Path

from tests.support.pki import EDGE_CLIENT_ID, Pki
from tests.support.router_spec import RouterSpec

# As many worker threads as the tests say TLS connections to one worker there may be.
CONCURRENCY = 2


def flags(spec: RouterSpec, pki: Pki, directory: Path, **changed: object) -> list[str]:
    """Port 0 everywhere; Envoy is the router's own child. `changed`: flags as `envoy_cert_path=...`."""
    given: dict[str, object] = {
        "--mode": "ingress",
        "--run-envoy": "true",
        "--envoy-concurrency": CONCURRENCY,
        "--state-dir": directory,
        "--listen-address": "127.0.0.1",
        "--port-https": 0,
        "--port-connect-tls": 0,
        "--port-xds": 0,
        "--port-extproc": 0,
        "--status-port": 0,
        "--metrics-listen-addr": "127.0.0.1:0",
        "--envoy-admin-address": "127.0.0.1:0",
        "--ateapi-address": spec.api_address,
        "--ateapi-ca-file": pki.service_roots,
        "--ateapi-client-cert": pki.router,
        "--envoy-cert-path": pki.router_edge,
        "--ingress-client-ca-file": pki.pod_roots,
        "--ingress-allowed-spiffe-ids": EDGE_CLIENT_ID,
        "--upstream-credential-bundle": spec.worker_credential or pki.router,
        "--upstream-trust-bundle": pki.pod_roots,
        "--stream-idle-timeout": spec.stream_idle,
        "--header-timeout": spec.header_limit,
        "--client-idle-timeout": spec.client_idle,
        "--actor-idle-timeout": spec.actor_idle,
        "--worker-connect-timeout": spec.connect_timeout,
        "--worker-silence-timeout": spec.handshake_timeout,
        "--parked-request-budget": spec.park_budget,
        "--parked-request-max": spec.park_max,
        "--parked-request-retry-interval": spec.retry_interval,
        "--parked-request-retry-factor": spec.retry_factor,
        "--drain-delay": spec.drain_delay,
        "--drain-timeout": spec.drain_timeout,
        "--drain-complete-file": directory / "drained",
    }
    if spec.tracing is not None:
        given["--otlp-collector-address"] = spec.tracing
    given |= {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return [str(word) for pair in given.items() for word in pair]
