"""`ate policy denials` and `ate policy suggest`: what did not pass, and the rules that would let it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import yaml
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, control
from atenet.cli.home import address_of, home_option, running
from atenet.cli.output import age, output_option, show
from atenet.cli.policy_file import parse_policy
from atenet.cli.refs import REF
from atenet.client.request import ClientTls
from atenet.denials.client import Denial, fetch_denials
from atenet.denials.suggest import Suggestion, suggest
from atenet.identity.spiffe import EGRESS_SERVER_NAME
from atenet.proto import ateapi_pb2 as pb

__all__ = ["denials", "suggestion", "yaml_text"]


@click.command("denials")
@click.argument("actor", type=REF)
@home_option
@output_option
def denials(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Show what an actor was lately denied, newest first.

    The gateway keeps a bounded number in memory; its log has one line for each.
    """
    with control(home) as stub:
        stub.GetActor(pb.GetActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
    found = _fetch(actor, home)
    columns = ("LAST", "TIMES", "KIND", "HOST", "PORT", "RULE", "REASON", "WHAT")
    show(output, [denial.data() for denial in found], columns, [_row(denial) for denial in found])


@click.command("suggest")
@click.argument("actor", type=REF)
@home_option
def suggestion(actor: pb.ObjectRef, home: Path) -> None:
    """Propose an egress policy that lets through what the actor was lately denied, and nothing else.

    Prints the actor's policy as YAML with rules added; look at them before you set it:

    \b
    ate policy suggest team/agent > policy.yaml
    ate policy set team/agent -f policy.yaml
    """
    from atenet.cli.policy import found_policy

    with control(home) as stub:
        policy = found_policy(stub, actor) or pb.EgressPolicy()
    click.echo(yaml_text(suggest(policy, _fetch(actor, home))), nl=False)


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


def _fetch(actor: pb.ObjectRef, home: Path) -> list[Denial]:
    layout, record = running(home)
    context = ClientTls.of(layout).context()
    address = address_of(record, "egress", "denials")
    named = f"{actor.atespace}/{actor.name}"
    found = fetch_denials(address, EGRESS_SERVER_NAME, named, context)
    return sorted(found, key=lambda denial: denial.last, reverse=True)


def _row(denial: Denial) -> Sequence[str]:
    known = (denial.kind, denial.host, denial.port, denial.rule)
    shown = ("-" if value is None else str(value) for value in known)
    return (f"{age(denial.last)} ago", str(denial.times), *shown, denial.reason, denial.detail)
