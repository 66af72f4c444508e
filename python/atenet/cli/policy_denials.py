"""`ate policy denials` and `ate policy suggest`: what did not pass, and the rules that would let it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import click
import grpc
import yaml
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, asking
from atenet.cli.home import home_option, running
from atenet.cli.output import age, output_option, show
from atenet.cli.policy_file import parse_policy
from atenet.cli.refs import REF
from atenet.cli.remote import Remote, remote_options
from atenet.client.request import ClientTls
from atenet.denials.client import fetch_denials
from atenet.denials.denial import Denial
from atenet.denials.suggest import Suggestion, suggest
from atenet.errors import AteError
from atenet.identity.spiffe import EGRESS_SERVER_NAME, pod_dns_name, pod_id
from atenet.local.processes import NAMESPACE, POOL
from atenet.proto import ateapi_pb2 as pb
from atenet.proto import egresssupport_pb2 as egress_pb
from atenet.proto.ateapi_pb2_grpc import ControlStub
from atenet.proto.egresssupport_pb2_grpc import EgressSupportStub

__all__ = ["denials", "denials_there", "recent_denials", "suggestion", "yaml_text"]


@click.command("denials")
@click.argument("actor", type=REF)
@home_option
@remote_options
@output_option
def denials(actor: pb.ObjectRef, home: Path, remote: Remote | None, output: str) -> None:
    """Show what an actor was lately denied, newest first.

    Gateways and workers keep a bounded number in memory; their logs have one line for each.
    """
    if remote is not None:
        with remote.asking() as channel:
            found = denials_there(channel, actor)
    else:
        with asking(home) as stub:
            stub.GetActor(pb.GetActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
        found = recent_denials(home, f"{actor.atespace}/{actor.name}")
    columns = ("LAST", "TIMES", "KIND", "HOST", "PORT", "RULE", "REASON", "WHAT")
    show(output, [denial.data() for denial in found], columns, [_row(denial) for denial in found])


@click.command("suggest")
@click.argument("actor", type=REF)
@home_option
@remote_options
def suggestion(actor: pb.ObjectRef, home: Path, remote: Remote | None) -> None:
    """Propose an egress policy that lets through what the actor was lately denied, and nothing else.

    Prints the actor's policy as YAML with rules added; look at them before you set it:

    \b
    ate policy suggest team/agent > policy.yaml
    ate policy set team/agent -f policy.yaml
    """
    from atenet.cli.policy import found_policy

    if remote is not None:
        with remote.asking() as channel:
            policy = found_policy(ControlStub(channel), actor)
            denied = denials_there(channel, actor)
    else:
        with asking(home) as stub:
            policy = found_policy(stub, actor)
        denied = recent_denials(home, f"{actor.atespace}/{actor.name}")
    click.echo(yaml_text(suggest(policy or pb.EgressPolicy(), denied)), nl=False)


def yaml_text(proposed: Suggestion) -> str:
    """A policy file, with what was added and what was left in comments. Raises BadInput where no policy can hold it."""
    lines = [f"# {line}" for line in _story(proposed)]
    rules = MessageToDict(proposed.policy).get("rules", [])
    text = "\n".join([*lines, yaml.safe_dump({"rules": rules}, sort_keys=False)])
    parse_policy(text, "the suggestion")
    return text


def _story(proposed: Suggestion) -> list[str]:
    added = [
        f"  {each.kind} {each.host} port {each.port}"
        + (" (only its name was asked for: the port is a guess)" if each.guessed else "")
        for each in proposed.added
    ]
    left = [f"  {each.denial.host or '-'}: {each.why}" for each in proposed.left]
    return [
        *(["Added, as it was denied lately:", *added] if added else ["Nothing to add."]),
        *(["Denied too, and no rule would help:", *dict.fromkeys(left)] if left else []),
    ]


def denials_there(channel: grpc.Channel, actor: pb.ObjectRef) -> list[Denial]:
    """Newest first, as the control plane gathered them. Who did not answer it is told on stderr."""
    request = egress_pb.ListActorEgressDenialsRequest(actor=actor)
    stub = EgressSupportStub(channel)
    answer = stub.ListActorEgressDenials(request, timeout=DEADLINE_SECONDS)
    for each in answer.unanswered:
        click.echo(f"{each} is left out: it does not answer", err=True)
    return [_told(each) for each in answer.denials]


def _told(given: egress_pb.EgressDenial) -> Denial:
    known = {
        name: getattr(given, name) if given.HasField(name) else None
        for name in ("kind", "host", "port", "rule")
    }
    return Denial(
        first=given.first.ToDatetime(UTC),
        last=given.last.ToDatetime(UTC),
        times=given.times,
        reason=given.reason,
        detail=given.detail,
        **known,
    )


def recent_denials(home: Path, named: str) -> list[Denial]:
    """Newest first: what the gateway denied, and the names that workers did, as the actor may have been on any.

    `named`: `<atespace>/<actor>`. One that does not answer is told on stderr. Raises AteError when none does.
    """
    layout, record = running(home)
    gateway = ClientTls.of(layout)
    workers = replace(gateway, roots=layout.home / "trust" / "pod-identity.pem")
    found: list[Denial] = []
    silent: list[AteError] = []
    asked = [process for process in record["processes"] if "denials" in process["addresses"]]
    for process in asked:
        is_worker = "atunnel" in process["addresses"]
        name = pod_dns_name(pod_id(NAMESPACE, POOL)) if is_worker else EGRESS_SERVER_NAME
        context = (workers if is_worker else gateway).context()
        try:
            found += fetch_denials(process["addresses"]["denials"], name, named, context)
        except AteError as error:
            silent.append(error)
            click.echo(f"{process['name']} is left out: {error.message}", err=True)
    if silent and len(silent) == len(asked):
        raise silent[0]
    return sorted(found, key=lambda denial: denial.last, reverse=True)


def _row(denial: Denial) -> Sequence[str]:
    known = (denial.kind, denial.host, denial.port, denial.rule)
    shown = ("-" if value is None else str(value) for value in known)
    return (f"{age(denial.last)} ago", str(denial.times), *shown, denial.reason, denial.detail)
