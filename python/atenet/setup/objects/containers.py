"""Containers: how they are confined, probed and told to end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from atenet.setup.config import Config
from atenet.setup.config_parts import Resources
from atenet.setup.objects.names import ACCOUNT, Object

__all__ = ["confined", "container", "flags", "http_probe", "image", "mount", "on_node", "tcp_probe"]


def image(config: Config, name: str) -> str:
    """`name`: the image's own, e.g. ate-controller."""
    given = getattr(config.images, name.replace("-", "_"))
    return given or f"{config.image_registry}/{name}:{config.image_tag}"


def flags(given: Mapping[str, object]) -> list[str]:
    """`{"--a": 1}` as `["--a=1"]`; None and False leave a flag out, a list repeats it."""
    words: list[str] = []
    for flag, value in given.items():
        if isinstance(value, list | tuple):
            words += [f"{flag}={each}" for each in value]
        elif value is not None:
            words.append(f"{flag}={value}")
    return words


def confined() -> Object:
    """What pod security `restricted` asks for, and a root directory that nobody writes to."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": ACCOUNT,
        "runAsGroup": ACCOUNT,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def on_node(capabilities: Sequence[str]) -> Object:
    """Root with these capabilities alone: for what keeps files of many accounts on a node."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 0,
        "runAsGroup": 0,
        "capabilities": {"drop": ["ALL"], "add": list(capabilities)},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container(
    config: Config,
    name: str,
    *,
    image_name: str,
    command: Sequence[str],
    args: Iterable[str],
    resources: Resources,
    mounts: Iterable[Object] = (),
    security: Object | None = None,
    ports: Mapping[str, int] | None = None,
    env: Sequence[Object] = (),
    **more: Any,
) -> Object:
    """`more`: probes, lifecycle, envFrom."""
    made: Object = {
        "name": name,
        "image": image(config, image_name),
        "imagePullPolicy": config.image_pull_policy,
        "command": list(command),
        "args": list(args),
        "resources": _resources(resources),
        "securityContext": security or confined(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(mounts),
        **more,
    }
    if ports:
        made["ports"] = [
            {"name": each, "containerPort": number, "protocol": "TCP"}
            for each, number in ports.items()
        ]
    if env:
        made["env"] = list(env)
    return made


def _resources(given: Resources) -> Object:
    return {
        what: amounts
        for what, amounts in (("requests", given.requests), ("limits", given.limits))
        if amounts
    }


def mount(volume: str, path: str, *, writable: bool = False, **more: Any) -> Object:
    """A volume in a container."""
    return {"name": volume, "mountPath": path, "readOnly": not writable, **more}


def http_probe(port: int, path: str, *, period: int = 2, failures: int = 3) -> Object:
    """Of a page over plain HTTP."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
        "successThreshold": 1,
    }


def tcp_probe(port: int, *, period: int = 5, failures: int = 3) -> Object:
    """For what serves mutual TLS alone, which kubelet cannot speak."""
    return {
        "tcpSocket": {"port": port},
        "periodSeconds": period,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
