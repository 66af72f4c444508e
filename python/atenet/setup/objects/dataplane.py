"""atenet-router and atenet-egress, on either dataplane. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects import agentgateway, egress_envoy, router_envoy
from atenet.setup.objects.names import EGRESS_EACH, Component, Object, Port
from atenet.setup.objects.workloads import deployment, disruption_budget, service, service_account

__all__ = ["dataplane"]

_TLS = {"https": (443, Port.HTTPS), "connect-tls": (8444, Port.CONNECT_TLS)}
_PLAIN = {"http": (80, Port.HTTP), "connect": (8081, Port.CONNECT)}


def dataplane(config: Config, *, pod_certificates: bool) -> list[Object]:
    """Both Deployments with all that is theirs."""
    router = router_envoy.template if config.envoy else agentgateway.router_template
    egress = egress_envoy.template if config.envoy else agentgateway.egress_template
    made = [
        (Component.ROUTER, router, config.router_replicas),
        (Component.EGRESS, egress, config.egress_replicas),
    ]
    objects: list[Object] = []
    for component, template, replicas in made:
        objects += [
            service_account(component),
            *([] if config.envoy else [agentgateway.file_of(config, component)]),
            deployment(component, replicas, template(config, pod_certificates=pod_certificates)),
            disruption_budget(component),
        ]
    return [*objects, _router_service(config), _egress_service(), _egress_each()]


def _router_service(config: Config) -> Object:
    # Envoy serves only over TLS, and only clients on its list.
    ports = _TLS if config.envoy else {**_TLS, **_PLAIN}
    made = service(Component.ROUTER, "atenet-router", dict(ports), type=config.router_service_type)
    if config.router_service_annotations:
        made["metadata"]["annotations"] = config.router_service_annotations
    return made


def _egress_each() -> Object:
    """For ateapi, which asks each of them what it denied; one that drains knows it still."""
    return service(
        Component.EGRESS,
        EGRESS_EACH,
        {"denials": (Port.DENIALS, Port.DENIALS)},
        clusterIP="None",
        publishNotReadyAddresses=True,
    )


def _egress_service() -> Object:
    return service(Component.EGRESS, "atenet-egress", {"tunnels": (443, Port.TUNNELS)})
