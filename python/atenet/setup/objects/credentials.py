"""ate-credentials: gives the egress gateway Secrets of the namespaces that atespaces were given. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, flags, mount, tcp_probe
from atenet.setup.objects.names import SERVING, TRUST, Component, Object, Port
from atenet.setup.objects.node_identity import TOKEN_DIRECTORY, token_volume
from atenet.setup.objects.workloads import (
    deployment,
    disruption_budget,
    grace,
    pod_template,
    service,
    service_account,
)

__all__ = ["credentials", "credentials_flags"]

# While its endpoint's removal spreads, questions still come; then those that are being answered end.
_LEAVE_SECONDS, _STOP_SECONDS = 5, 10
_API_SERVER = "https://kubernetes.default.svc:443"


def credentials_flags(config: Config) -> list[str]:
    """Of `atenet credentials`."""
    return flags(
        {
            "--listen": f"0.0.0.0:{Port.CREDENTIALS}",
            "--credential": volumes.SERVING_FILE,
            "--trust": volumes.trust_file("pod-identity"),
            "--provider-class": config.credential_class,
            "--kubernetes": _API_SERVER,
            "--kubernetes-token": f"{TOKEN_DIRECTORY}/token",
            "--kubernetes-ca": f"{TOKEN_DIRECTORY}/ca.crt",
            "--allow": config.credential_allow,
            "--log-level": config.log_level,
        }
    )


def credentials(config: Config, *, pod_certificates: bool) -> list[Object]:
    """Deployment, Service, ServiceAccount, PodDisruptionBudget; nothing where no atespace was given a namespace."""
    if not config.credential_allow:
        return []
    component = Component.CREDENTIALS
    template = pod_template(
        config,
        component,
        containers=[_provider(config)],
        volumes=[
            volumes.serving(component.value, pod_certificates=pod_certificates),
            volumes.trust(),
            token_volume(),
            volumes.scratch("tmp"),
        ],
        grace_seconds=grace(_LEAVE_SECONDS, _STOP_SECONDS),
        scheduling=config.scheduling,
    )
    return [
        service_account(component),
        deployment(component, config.credential_replicas, template),
        disruption_budget(component),
        service(component, component.value, {"grpc": (443, Port.CREDENTIALS)}),
    ]


def _provider(config: Config) -> Object:
    return container(
        config,
        "credentials",
        image_name="atenet",
        command=["atenet", "credentials"],
        args=credentials_flags(config),
        resources=config.resources.credentials,
        mounts=[
            mount("serving", SERVING),
            mount("trust", TRUST),
            mount("token", TOKEN_DIRECTORY),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
        ],
        ports={"grpc": Port.CREDENTIALS},
        startupProbe=tcp_probe(Port.CREDENTIALS, period=1, failures=60),
        readinessProbe=tcp_probe(Port.CREDENTIALS),
        livenessProbe=tcp_probe(Port.CREDENTIALS, period=10),
        lifecycle={"preStop": {"sleep": {"seconds": _LEAVE_SECONDS}}},
    )
