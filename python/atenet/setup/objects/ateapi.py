"""The control plane: replicas that share nothing but PostgreSQL. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.config_parts import Resources
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, flags, http_probe, mount, tcp_probe
from atenet.setup.objects.names import (
    EGRESS_EACH,
    IDENTITY,
    NAMESPACE,
    SERVING,
    TRUST,
    WORKER_DENIALS,
    Component,
    Object,
    Port,
)
from atenet.setup.objects.object_store import object_store_env
from atenet.setup.objects.workloads import (
    deployment,
    disruption_budget,
    grace,
    pod_template,
    service,
    service_account,
)

__all__ = ["ateapi", "migrate_flags", "serve_flags"]

_STORE = "/run/ate/store"
_SEAL = "/run/ate/token-keys"
# While its endpoint's removal spreads, calls still come; then running ones may end.
_LEAVE_SECONDS, _DRAIN_SECONDS = 5, 20


def migrate_flags(config: Config) -> list[str]:
    """Of `ateapi migrate`."""
    return flags({"--store": f"@{_STORE}/url", "--log-level": config.log_level})


def serve_flags(config: Config) -> list[str]:
    """Of `ateapi serve`."""
    key = volumes.authority_file("actor-identity")
    people = config.people
    return flags(
        {
            "--store": f"@{_STORE}/url",
            "--snapshots": config.snapshots,
            "--listen": f"0.0.0.0:{Port.API}",
            "--stats-listen": f"0.0.0.0:{Port.API_STATS}",
            "--server-credential": volumes.SERVING_FILE,
            "--client-credential": volumes.IDENTITY_FILE,
            "--client-roots": volumes.trust_file("pod-identity"),
            "--node-roots": volumes.trust_file("pod-identity"),
            "--actor-ca-cert": key,
            "--actor-ca-key": key,
            "--default-sandbox": config.default_sandbox,
            "--role": config.role,
            "--issuer": config.issuer,
            "--issuer-listen": config.issuer and f"0.0.0.0:{Port.ISSUER}",
            "--keys-secret": config.token_keys_secret and f"{_SEAL}/seal",
            "--token-listen": people and f"0.0.0.0:{Port.TOKENS}",
            "--token-issuer": people and people.issuer,
            "--token-audience": people and people.audiences,
            "--token-role-claim": people and people.role_claim,
            "--token-role": people and people.roles,
            "--egress-denials": f"{EGRESS_EACH}.{NAMESPACE}.svc:{Port.DENIALS}",
            "--egress-denials-roots": volumes.trust_file("service-dns"),
            "--worker-denials-port": WORKER_DENIALS,
            "--otlp-collector-address": config.otlp_collector,
            "--drain-timeout": f"{_DRAIN_SECONDS}s",
            "--log-level": config.log_level,
        }
    )


def ateapi(config: Config, *, pod_certificates: bool) -> list[Object]:
    """Deployment, Service, ServiceAccount, PodDisruptionBudget."""
    component = Component.API
    return [
        service_account(component),
        deployment(component, config.api_replicas, _template(config, pod_certificates)),
        disruption_budget(component),
        service(component, "api", _service_ports(config)),
    ]


def _service_ports(config: Config) -> dict[str, tuple[int, int]]:
    ports = {"grpc": (443, Port.API)}
    if config.issuer:
        ports["issuer"] = (Port.ISSUER, Port.ISSUER)
    if config.people:
        ports["tokens"] = (Port.TOKENS, Port.TOKENS)
    return ports


def _template(config: Config, pod_certificates: bool) -> Object:
    component = Component.API
    return pod_template(
        config,
        component,
        init=[_migration(config)],
        containers=[_server(config)],
        volumes=[
            volumes.identity(component.account, pod_certificates=pod_certificates),
            volumes.serving("api", pod_certificates=pod_certificates),
            volumes.trust(),
            volumes.authority("actor-identity"),
            volumes.secret("store", config.database_url_secret, {"url": "url"}),
            *_seal(config),
            volumes.scratch("tmp"),
        ],
        grace_seconds=grace(_LEAVE_SECONDS, _DRAIN_SECONDS),
        scheduling=config.scheduling,
    )


def _seal(config: Config) -> list[Object]:
    name = config.token_keys_secret
    return [volumes.secret("token-keys", name, {"seal": "seal"})] if name else []


def _migration(config: Config) -> Object:
    """Every replica asks; the first one does it, and again it does nothing."""
    return container(
        config,
        "migrate",
        image_name="ateapi",
        command=["ateapi", "migrate"],
        args=migrate_flags(config),
        resources=Resources(requests={"cpu": "50m", "memory": "96Mi"}, limits={"memory": "256Mi"}),
        mounts=[mount("store", _STORE), mount("tmp", "/tmp", writable=True)],  # noqa: S108
    )


def _server(config: Config) -> Object:
    return container(
        config,
        "ateapi",
        image_name="ateapi",
        command=["ateapi", "serve"],
        args=serve_flags(config),
        resources=config.resources.ateapi,
        env=object_store_env(config),
        mounts=[
            mount("identity", IDENTITY),
            mount("serving", SERVING),
            mount("trust", TRUST),
            mount("authority-actor-identity", "/run/ate/authority/actor-identity"),
            mount("store", _STORE),
            *([mount("token-keys", _SEAL)] if config.token_keys_secret else []),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
        ],
        ports={
            "grpc": Port.API,
            "stats": Port.API_STATS,
            **({"issuer": Port.ISSUER} if config.issuer else {}),
            **({"tokens": Port.TOKENS} if config.people else {}),
        },
        startupProbe=tcp_probe(Port.API, period=1, failures=60),
        readinessProbe=http_probe(Port.API_STATS, "/readyz"),
        livenessProbe=http_probe(Port.API_STATS, "/healthz", period=10),
        lifecycle={"preStop": {"sleep": {"seconds": _LEAVE_SECONDS}}},
    )
