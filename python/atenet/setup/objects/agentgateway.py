"""agentgateway's one container, its ConfigMap, and its pods in both directions. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from atenet.setup.config import Config
from atenet.setup.objects import volumes
from atenet.setup.objects.agentgateway_files import egress_file, router_file
from atenet.setup.objects.containers import container, flags, http_probe, mount
from atenet.setup.objects.denials import denials_flags
from atenet.setup.objects.names import IDENTITY, SERVING, TRUST, Component, Object, Port, metadata
from atenet.setup.objects.workloads import grace, pod_template

__all__ = ["egress_template", "file_of", "process_flags", "router_template"]

FILE = "agentgateway.yaml"
_DIRECTORY = "/etc/ate"


def process_flags(config: Config, component: Component) -> list[str]:
    """Of `atenet agentgateway`."""
    egress = component is Component.EGRESS
    return flags(
        {
            "--file": f"{_DIRECTORY}/{FILE}",
            "--egress-allow-cidr": config.egress_allow_cidr if egress else None,
            "--egress-name-server": config.egress_name_server if egress else None,
            **(denials_flags() if egress else {}),
        }
    )


def file_of(config: Config, component: Component) -> Object:
    """The ConfigMap with the static file."""
    text = router_file(config) if component is Component.ROUTER else egress_file(config)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(component.value, component),
        "data": {FILE: text},
    }


def router_template(config: Config, *, pod_certificates: bool) -> Object:
    """The pod of atenet-router."""
    ports = {
        "https": Port.HTTPS,
        "connect-tls": Port.CONNECT_TLS,
        "http": Port.HTTP,
        "connect": Port.CONNECT,
    }
    return _template(config, Component.ROUTER, ports, config.router_drain, pod_certificates)


def egress_template(config: Config, *, pod_certificates: bool) -> Object:
    """The pod of atenet-egress, which mints itself and so mounts the interception key."""
    return _template(
        config,
        Component.EGRESS,
        {"tunnels": Port.TUNNELS, "denials": Port.DENIALS},
        config.egress_drain,
        pod_certificates,
        volumes_more=[volumes.authority("interception")],
        mounts_more=[mount("authority-interception", "/run/ate/authority/interception")],
    )


def _template(
    config: Config,
    component: Component,
    ports: Mapping[str, int],
    drain: float,
    pod_certificates: bool,
    *,
    volumes_more: Sequence[Object] = (),
    mounts_more: Sequence[Object] = (),
) -> Object:
    text = file_of(config, component)["data"][FILE]
    one = container(
        config,
        "agentgateway",
        image_name="atenet",
        command=["atenet", "agentgateway"],
        args=process_flags(config, component),
        resources=config.resources.agentgateway,
        mounts=[
            mount("identity", IDENTITY),
            mount("serving", SERVING),
            mount("trust", TRUST),
            mount("file", _DIRECTORY),
            mount("tmp", "/tmp", writable=True),  # noqa: S108
            *mounts_more,
        ],
        ports={**ports, "stats": Port.STATS, "readiness": Port.READINESS},
        readinessProbe=http_probe(Port.READINESS, "/readyz"),
        livenessProbe=http_probe(Port.READINESS, "/healthz", period=10),
    )
    return pod_template(
        config,
        component,
        containers=[one],
        volumes=[
            volumes.identity(component.account, pod_certificates=pod_certificates),
            volumes.serving(component.value, pod_certificates=pod_certificates),
            volumes.trust(),
            {"name": "file", "configMap": {"name": component.value}},
            volumes.scratch("tmp"),
            *volumes_more,
        ],
        grace_seconds=grace(config.drain_delay, drain),
        scheduling=config.scheduling,
        # The file is read at the start: a changed one is a new pod.
        annotations={"ate.dev/file": hashlib.sha256(text.encode()).hexdigest()},
    )
