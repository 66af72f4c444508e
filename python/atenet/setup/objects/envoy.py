"""Envoy's own container, and what it shares with the process beside it: the same for both directions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atenet.setup.config import Config
from atenet.setup.config_parts import Resources
from atenet.setup.objects import volumes
from atenet.setup.objects.containers import container, mount, tcp_probe
from atenet.setup.objects.names import Object

__all__ = ["DRAINED", "RUN", "bootstrap", "proxy", "scratch", "shared"]

# Of the pod alone: Envoy's bootstrap, the drain's lever and its end, Unix sockets.
RUN = "/run/atenet"
DRAINED = f"{RUN}/drain-complete"
_BOOTSTRAP = f"{RUN}/envoy.json"
# The hook gives up a little before kubelet would.
_HOOK_MARGIN = 5


def scratch() -> list[Object]:
    """What pods with Envoy have besides certificates."""
    return [volumes.scratch("run", memory=True, size="16Mi"), volumes.scratch("tmp")]


def shared() -> list[Object]:
    """The same in a container."""
    return [mount("run", RUN, writable=True), mount("tmp", "/tmp", writable=True)]  # noqa: S108


def bootstrap(config: Config, flags: Sequence[str], files: Sequence[Object]) -> Object:
    """Writes what Envoy starts with; it has no shell and no flags of ours."""
    return container(
        config,
        "bootstrap",
        image_name="atenet",
        command=["atenet", "router", "bootstrap"],
        args=[*flags, f"--output={_BOOTSTRAP}"],
        resources=Resources(requests={"cpu": "50m", "memory": "96Mi"}, limits={"memory": "256Mi"}),
        mounts=[*files, *shared()],
    )


def proxy(
    config: Config, files: Sequence[Object], *, ports: Mapping[str, int], drain: float
) -> Object:
    """Kept alive by its preStop hook until the process beside it has drained it."""
    hook_seconds = config.drain_delay + drain + _HOOK_MARGIN
    return container(
        config,
        "envoy",
        image_name="atenet",
        command=["envoy"],
        # Envoy takes no `--flag=value`.
        args=[
            *("--config-path", _BOOTSTRAP),
            *("--concurrency", str(config.proxy_threads)),
            *("--drain-strategy", "immediate"),
            *("--drain-time-s", str(max(1, round(drain)))),
            # Below that Envoy logs the fields of every request, secrets and all.
            *("--log-level", "error" if config.log_level == "error" else "warning"),
            *("--file-flush-interval-msec", "500"),
            "--disable-hot-restart",
        ],
        resources=config.resources.envoy,
        mounts=[*files, *shared()],
        ports=ports,
        readinessProbe=tcp_probe(next(iter(ports.values()))),
        lifecycle={
            "preStop": {
                "exec": {
                    "command": [
                        *("atenet", "router", "wait-drained"),
                        f"--drain-complete-file={DRAINED}",
                        f"--timeout={hook_seconds:g}s",
                    ]
                }
            }
        },
    )
