"""`--api`: a control plane somewhere else, asked as a person, by a token or by a client certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import grpc

from atenet.address import Address
from atenet.cli.control import calling
from atenet.cli.failure import BadInput, NotReachable
from atenet.cli.output import working
from atenet.identity.spiffe import API_SERVER_NAME

__all__ = ["Remote", "remote_options"]

_Command = Callable[..., Any]


@dataclass(frozen=True)
class Remote:
    """Where it is, whom it must chain to, and what proves the person: one of the two."""

    address: str
    roots: Path
    token_file: Path | None = None
    credential: Path | None = None

    @contextmanager
    def asking(self) -> Iterator[grpc.Channel]:
        """Raises AteError; so do calls within the body."""
        options = [("grpc.ssl_target_name_override", API_SERVER_NAME)]
        with (
            working("asking the control plane"),
            grpc.secure_channel(self.address, self._credentials(), options=options) as channel,
        ):
            try:
                with calling(self.address):
                    yield channel
            except NotReachable as error:
                raise NotReachable(
                    error.message,
                    hint="is its port forwarded (kubectl -n ate-system port-forward service/api …), and are "
                    "--api-roots those of this installation (service-dns.pem of ConfigMap ate-trust)?",
                ) from error

    def _credentials(self) -> grpc.ChannelCredentials:
        roots = _read("--api-roots", self.roots)
        if self.credential is not None:
            bundle = _read("--credential", self.credential)
            return grpc.ssl_channel_credentials(roots, bundle, bundle)
        assert self.token_file is not None  # one of the two was asked for
        token = _read("--token-file", self.token_file).decode("ascii", "replace").strip()
        return grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials(roots), grpc.access_token_call_credentials(token)
        )


def _read(flag: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{flag}: cannot read {file}: {error.strerror}") from error


def remote_options(command: _Command) -> _Command:
    """`--api` and what belongs to it, as the parameter `remote`; None: the system of `--home`."""

    def with_remote(
        *,
        api: str | None,
        api_roots: Path | None,
        token_file: Path | None,
        credential: Path | None,
        **others: Any,
    ) -> Any:
        return command(remote=_remote(api, api_roots, token_file, credential), **others)

    with_remote.__doc__, with_remote.__name__ = command.__doc__, command.__name__
    vars(with_remote).update(vars(command))
    decorated: _Command = with_remote
    files = click.Path(path_type=Path)
    for option in (
        click.option(
            "--credential",
            type=files,
            envvar="ATE_CREDENTIAL",
            help="With --api: PEM with your key and certificate.",
        ),
        click.option(
            "--token-file",
            type=files,
            envvar="ATE_TOKEN_FILE",
            help="With --api: file with your OpenID Connect token.",
        ),
        click.option(
            "--api-roots",
            type=files,
            envvar="ATE_API_ROOTS",
            help="With --api: PEM of the authority that its certificate must chain to.",
        ),
        click.option(
            "--api",
            metavar="HOST:PORT",
            envvar="ATE_API",
            help="Ask the control plane there, of a cluster, instead of the system of --home.",
        ),
    ):
        decorated = option(decorated)
    return decorated


def _remote(
    api: str | None, roots: Path | None, token_file: Path | None, credential: Path | None
) -> Remote | None:
    if api is None:
        return None
    try:
        Address.parse(api)
    except ValueError as error:
        raise BadInput(f"--api: {error}") from error
    if roots is None:
        raise BadInput(
            "--api needs --api-roots",
            hint="on Kubernetes: kubectl -n ate-system get configmap ate-trust "
            "-o jsonpath='{.data.service-dns\\.pem}' > roots.pem",
        )
    if (token_file is None) == (credential is None):
        raise BadInput(
            "--api needs one of --token-file and --credential",
            hint="a token goes to port 7450 of the Service api, a certificate to port 443",
        )
    return Remote(api, roots, token_file, credential)
