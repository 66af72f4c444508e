"""`ate-setup manifests`: the objects as YAML, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import yaml

from atenet.setup.flags import config_options
from atenet.setup.objects import Cluster, everything
from atenet.setup.objects.names import Object
from atenet.setup.sources import config_from, read_values

__all__ = ["as_yaml", "manifests"]


@click.command()
@config_options
def manifests(flags: dict[str, Any], values: Path | None) -> None:
    """Print the same objects as YAML.

    For GitOps. What `install` does besides is then yours: the Secret of the database, and the authorities' keys
    (docs/kubernetes/install.md). Without a cluster to ask, --pod-certificates=auto means on.
    """
    config = config_from(flags, read_values(values), file=str(values or ""))
    cluster = Cluster(pod_certificates=config.pod_certificates != "off")
    click.echo(as_yaml(everything(config, cluster)), nl=False)


def as_yaml(objects: Iterable[Object]) -> str:
    """One document each."""
    return "".join(f"---\n{yaml.dump(each, Dumper=_Dumper, sort_keys=False)}" for each in objects)


class _Dumper(yaml.CSafeDumper):
    """Without anchors, and texts of several lines as they are read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
