"""ate-controller: worker pools, certificates, trust. Pure."""

from __future__ import annotations

from atenet.identity import spiffe
from atenet.setup.config import Config
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, flags, http_probe, image, mount
from atenet.setup.objects.names import IDENTITY, NAMESPACE, TRUST, Component, Object, Port
from atenet.setup.objects.node_identity import TOKEN_DIRECTORY, token_volume
from atenet.setup.objects.workloads import (
    deployment,
    disruption_budget,
    grace,
    pod_template,
    service_account,
)

__all__ = ["controller", "controller_flags"]

_STOP_SECONDS = 15


def controller_flags(config: Config, *, pod_certificates: bool) -> list[str]:
    """Of `ate-controller run`."""
    return flags(
        {
            "--namespace": NAMESPACE,
            "--api": f"{spiffe.API_SERVER_NAME}:443",
            "--api-roots": volumes.trust_file("service-dns"),
            "--credential": volumes.IDENTITY_FILE,
            "--worker-image": image(config, "ateworker"),
            "--worker-image-pull-policy": config.image_pull_policy,
            "--worker-log-level": config.log_level,
            "--pod-certificates": str(pod_certificates).lower(),
            "--stats-listen": f"0.0.0.0:{Port.CONTROLLER_STATS}",
            "--log-level": config.log_level,
        }
    )


def controller(config: Config, *, pod_certificates: bool) -> list[Object]:
    """Deployment, ServiceAccount, PodDisruptionBudget."""
    component = Component.CONTROLLER
    template = pod_template(
        config,
        component,
        containers=[
            container(
                config,
                "ate-controller",
                image_name="ate-controller",
                command=["ate-controller", "run"],
                args=controller_flags(config, pod_certificates=pod_certificates),
                resources=config.resources.ate_controller,
                mounts=[
                    # It signs its own certificate: no other could sign it before it runs.
                    mount("identity", IDENTITY, writable=True),
                    mount("trust", TRUST),
                    mount("token", TOKEN_DIRECTORY),
                    mount("tmp", "/tmp", writable=True),  # noqa: S108
                ],
                ports={"stats": Port.CONTROLLER_STATS},
                readinessProbe=http_probe(Port.CONTROLLER_STATS, "/readyz"),
                livenessProbe=http_probe(Port.CONTROLLER_STATS, "/healthz", period=10),
            )
        ],
        volumes=[
            volumes.scratch("identity", memory=True, size="1Mi"),
            _trust_that_it_makes(),
            token_volume(),
            volumes.scratch("tmp"),
        ],
        grace_seconds=grace(_STOP_SECONDS),
        scheduling=config.scheduling,
    )
    return [
        service_account(component),
        deployment(component, config.controller_replicas, template),
        disruption_budget(component),
    ]


def _trust_that_it_makes() -> Object:
    # It writes `ate-trust` itself: its first pod must not wait for it.
    return {"name": "trust", "configMap": {"name": "ate-authorities"}}
