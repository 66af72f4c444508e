"""A whole configuration file as data, to be changed by a test."""

from typing import Any

import yaml

TLS = {"cert": "pod.pem", "key": "pod.pem", "root": "roots.pem"}


def ingress(**settings: Any) -> dict[str, Any]:
    policy = {"host": "api.ate-system.svc:443", "policies": {"backendTLS": dict(TLS)}, **settings}
    return {
        "policies": {"substrateIngress": policy},
        "backends": [{"backend": "/workers"}],
    }


def config(**parts: Any) -> dict[str, Any]:
    """The smallest file: one plain gateway. `parts` replace top-level keys."""
    tunnel = {
        "proxy": {"backend": "/workers"},
        "mode": "connect",
        "policies": {"backendTLS": dict(TLS)},
    }
    return {
        "gateways": {"default": {"port": 8080}},
        "backends": [{"name": "workers", "dynamic": {}, "policies": {"backendTunnel": tunnel}}],
        "routes": [ingress()],
        **parts,
    }


def connect_binds(**settings: Any) -> list[dict[str, Any]]:
    """One CONNECT port and the inside of its tunnels."""
    return [
        {"port": 8081, "tunnelProtocol": "connect", "listeners": [{"name": "connect"}]},
        {"mode": "internal", "listeners": [{"routes": [ingress(**settings)]}]},
    ]


def text(data: dict[str, Any]) -> str:
    # Without aliases, so that each part has lines of its own.
    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(data, Dumper=Plain, sort_keys=False)
