"""The pod of atenet-router on Envoy: Envoy, and beside it the process that configures it and decides. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects import envoy, volumes
from atenet.setup.objects.containers import container, flags, http_probe, mount
from atenet.setup.objects.names import IDENTITY, SERVING, TRUST, Component, Object, Port
from atenet.setup.objects.workloads import grace, pod_template

__all__ = ["router_flags", "template"]


def router_flags(config: Config) -> list[str]:
    """Of `atenet router --mode=ingress`, and of `atenet router bootstrap`."""
    return flags(
        {
            "--mode": "ingress",
            "--state-dir": envoy.RUN,
            "--ateapi-ca-file": volumes.trust_file("service-dns"),
            "--ateapi-client-cert": volumes.IDENTITY_FILE,
            "--envoy-cert-path": volumes.SERVING_FILE,
            "--ingress-client-ca-file": volumes.trust_file("pod-identity"),
            "--ingress-allowed-spiffe-ids": ",".join(config.ingress_allowed_spiffe_ids),
            "--upstream-credential-bundle": volumes.IDENTITY_FILE,
            "--upstream-trust-bundle": volumes.trust_file("pod-identity"),
            "--port-https": Port.HTTPS,
            "--port-connect-tls": Port.CONNECT_TLS,
            "--port-xds": Port.XDS,
            "--port-extproc": Port.EXTPROC,
            "--envoy-admin-address": f"127.0.0.1:{Port.ENVOY_ADMIN}",
            "--status-port": Port.STATUS,
            "--metrics-listen-addr": f"0.0.0.0:{Port.ROUTER_PAGES}",
            "--parked-request-budget": f"{config.parked_request_budget:g}s",
            "--parked-request-max": config.parked_request_max,
            "--drain-delay": f"{config.drain_delay:g}s",
            "--drain-timeout": f"{config.router_drain:g}s",
            "--drain-complete-file": envoy.DRAINED,
            "--otlp-collector-address": config.otlp_collector,
            "--log-level": config.log_level,
        }
    )


def template(config: Config, *, pod_certificates: bool) -> Object:
    """Both containers see the same certificates: Envoy shows them, the process beside it reads them at its start."""
    given = router_flags(config)
    files = [mount("identity", IDENTITY), mount("serving", SERVING), mount("trust", TRUST)]
    beside = container(
        config,
        "router",
        image_name="atenet",
        command=["atenet", "router"],
        args=given,
        resources=config.resources.router,
        mounts=[*files, *envoy.shared()],
        ports={"pages": Port.ROUTER_PAGES},
        readinessProbe=http_probe(Port.ROUTER_PAGES, "/readyz"),
        livenessProbe=http_probe(Port.ROUTER_PAGES, "/healthz", period=10),
    )
    return pod_template(
        config,
        Component.ROUTER,
        init=[envoy.bootstrap(config, given, files)],
        containers=[
            envoy.proxy(
                config,
                files,
                ports={"https": Port.HTTPS, "connect-tls": Port.CONNECT_TLS},
                drain=config.router_drain,
            ),
            beside,
        ],
        volumes=[
            volumes.identity(Component.ROUTER.account, pod_certificates=pod_certificates),
            volumes.serving(Component.ROUTER.value, pod_certificates=pod_certificates),
            volumes.trust(),
            *envoy.scratch(),
        ],
        grace_seconds=grace(config.drain_delay, config.router_drain),
        scheduling=config.scheduling,
    )
