"""How ateapi and atelet find the object store: the usual variables, keys by reference to a Secret. Pure."""

from __future__ import annotations

from atenet.setup.config import Config
from atenet.setup.objects.names import Object

__all__ = ["object_store_env"]

_KEYS = {"AWS_ACCESS_KEY_ID": False, "AWS_SECRET_ACCESS_KEY": False, "AWS_SESSION_TOKEN": True}


def object_store_env(config: Config) -> list[Object]:
    """For a container's `env`."""
    plain = {
        "AWS_REGION": config.snapshots_region,
        "AWS_ENDPOINT_URL": config.snapshots_endpoint,
        "AWS_ALLOW_HTTP": "true"
        if (config.snapshots_endpoint or "").startswith("http://")
        else None,
    }
    given: list[Object] = [{"name": name, "value": value} for name, value in plain.items() if value]
    if config.snapshots_secret is None:
        return given
    for key, optional in _KEYS.items():
        reference: Object = {"name": config.snapshots_secret, "key": key}
        if optional:
            reference["optional"] = True
        given.append({"name": key, "valueFrom": {"secretKeyRef": reference}})
    return given
