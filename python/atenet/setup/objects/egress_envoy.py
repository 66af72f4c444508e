"""The pod of atenet-egress on Envoy: Envoy, what decides for it, and sdsmint, alone with the interception key. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects import envoy, volumes
from atenet.setup.objects.containers import container, flags, http_probe, mount
from atenet.setup.objects.denials import denials_flags
from atenet.setup.objects.names import IDENTITY, SERVING, TRUST, Component, Object, Port
from atenet.setup.objects.workloads import grace, pod_template

__all__ = ["egress_flags", "sdsmint_flags", "template"]

_SDSMINT_SOCKET = f"{envoy.RUN}/sdsmint.sock"


def egress_flags(config: Config) -> list[str]:
    """Of `atenet router --mode=egress`, and of `atenet router bootstrap`."""
    provider = config.provider
    return flags(
        {
            "--mode": "egress",
            "--state-dir": envoy.RUN,
            "--ateapi-ca-file": volumes.trust_file("service-dns"),
            "--ateapi-client-cert": volumes.IDENTITY_FILE,
            "--envoy-cert-path": volumes.SERVING_FILE,
            "--actor-identity-ca-file": volumes.trust_file("actor-identity"),
            "--sdsmint-socket": _SDSMINT_SOCKET,
            # Whoever can ask for decisions is told credentials: a socket of this account, no port.
            "--extproc-socket": f"{envoy.RUN}/decisions.sock",
            "--credential-provider-name": provider and provider.uri_authority,
            "--credential-provider-address": provider and provider.address,
            "--credential-provider-server-name": provider
            and (provider.server_name or provider.host),
            "--egress-allow-cidr": config.egress_allow_cidr,
            "--egress-name-server": config.egress_name_server,
            **denials_flags(),
            "--port-tunnels": Port.TUNNELS,
            "--port-xds": Port.XDS,
            "--envoy-admin-address": f"127.0.0.1:{Port.ENVOY_ADMIN}",
            "--status-port": Port.STATUS,
            "--metrics-listen-addr": f"0.0.0.0:{Port.ROUTER_PAGES}",
            "--drain-delay": f"{config.drain_delay:g}s",
            "--drain-timeout": f"{config.egress_drain:g}s",
            "--drain-complete-file": envoy.DRAINED,
            "--log-level": config.log_level,
        }
    )


def sdsmint_flags(config: Config) -> list[str]:
    """Of `atenet sdsmint`."""
    return flags(
        {
            "--uds-path": _SDSMINT_SOCKET,
            "--ca-pool-path": volumes.authority_file("interception"),
            "--metrics-listen-addr": f"0.0.0.0:{Port.SDSMINT_PAGES}",
            "--log-level": config.log_level,
        }
    )


def template(config: Config, *, pod_certificates: bool) -> Object:
    """sdsmint starts before Envoy and ends after it: an init container that stays."""
    given = egress_flags(config)
    files = [mount("identity", IDENTITY), mount("serving", SERVING), mount("trust", TRUST)]
    return pod_template(
        config,
        Component.EGRESS,
        init=[_sdsmint(config), envoy.bootstrap(config, given, files)],
        containers=[
            envoy.proxy(config, files, ports={"tunnels": Port.TUNNELS}, drain=config.egress_drain),
            container(
                config,
                "router",
                image_name="atenet",
                command=["atenet", "router"],
                args=given,
                resources=config.resources.egress,
                mounts=[*files, *envoy.shared()],
                ports={"pages": Port.ROUTER_PAGES, "denials": Port.DENIALS},
                readinessProbe=http_probe(Port.ROUTER_PAGES, "/readyz"),
                livenessProbe=http_probe(Port.ROUTER_PAGES, "/healthz", period=10),
            ),
        ],
        volumes=[
            volumes.identity(Component.EGRESS.account, pod_certificates=pod_certificates),
            volumes.serving(Component.EGRESS.value, pod_certificates=pod_certificates),
            volumes.trust(),
            volumes.authority("interception"),
            *envoy.scratch(),
        ],
        grace_seconds=grace(config.drain_delay, config.egress_drain),
        scheduling=config.scheduling,
    )


def _sdsmint(config: Config) -> Object:
    return container(
        config,
        "sdsmint",
        image_name="atenet",
        command=["atenet", "sdsmint"],
        args=sdsmint_flags(config),
        resources=config.resources.sdsmint,
        mounts=[
            mount("authority-interception", "/run/ate/authority/interception"),
            *envoy.shared(),
        ],
        ports={"minting": Port.SDSMINT_PAGES},
        restartPolicy="Always",
        startupProbe=http_probe(Port.SDSMINT_PAGES, "/readyz", period=1, failures=60),
        livenessProbe=http_probe(Port.SDSMINT_PAGES, "/readyz", period=10),
    )
