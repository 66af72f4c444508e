"""The cluster that a command works on: which, and what it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atenet.cli.failure import NotReachable
from atenet.errors import AteError

if TYPE_CHECKING:
    import lightkube

__all__ = ["Cluster", "cluster_options"]

_Command = Callable[..., Any]


@dataclass(frozen=True)
class Cluster:
    """One API server, by a kubeconfig. lightkube is loaded when it is first asked."""

    kubeconfig: Path | None = None
    context: str | None = None

    @cached_property
    def _config(self) -> Any:
        import yaml
        from lightkube import KubeConfig
        from lightkube.core.exceptions import ConfigError

        try:
            given = self.kubeconfig
            found = KubeConfig.from_file(str(given)) if given else KubeConfig.from_env()
            chosen = found.get(context_name=self.context)
        except (ConfigError, OSError, yaml.YAMLError, ValueError, LookupError, TypeError) as error:
            raise AteError(
                f"no usable kubeconfig: {error}",
                hint="name one with --kubeconfig or KUBECONFIG, and its context with --context",
            ) from error
        if chosen is None:
            raise AteError(
                f"--context: the kubeconfig has no context {self.context!r}"
                if self.context
                else "the kubeconfig names no current context",
                hint="`kubectl config get-contexts` lists them",
            )
        return chosen

    def client(self) -> lightkube.Client:
        """Raises AteError: there is no kubeconfig."""
        from lightkube import Client

        return Client(config=self._config, field_manager="ate-setup")

    def async_client(self) -> lightkube.AsyncClient:
        """Raises AteError: there is no kubeconfig."""
        from lightkube import AsyncClient

        return AsyncClient(config=self._config, field_manager="ate-setup")

    @property
    def server(self) -> str:
        """Where it is, for messages."""
        return str(self._config.cluster.server)


def cluster_options(command: _Command) -> _Command:
    """`--kubeconfig` and `--context`, as the parameter `cluster`."""

    def with_cluster(*, kubeconfig: Path | None, context: str | None, **others: Any) -> Any:
        return command(cluster=Cluster(kubeconfig, context), **others)

    with_cluster.__doc__, with_cluster.__name__ = command.__doc__, command.__name__
    vars(with_cluster).update(vars(command))
    decorated = click.option(
        "--context", help="The kubeconfig's context. Default: its current one."
    )(with_cluster)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        help="Default: $KUBECONFIG, ~/.kube/config, or the pod's own account.",
    )(decorated)


def unreachable(server: str, error: Exception) -> NotReachable:
    """What to say when nobody answers there."""
    return NotReachable(
        f"the API server {server} does not answer: {error}",
        hint="is the cluster up, and is this the right --context?",
    )
