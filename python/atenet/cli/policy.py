"""`ate policy ...`"""

from __future__ import annotations

from pathlib import Path

import click
import grpc
from google.protobuf.json_format import MessageToDict

from atenet.cli.control import DEADLINE_SECONDS, asking
from atenet.cli.failure import BadInput
from atenet.cli.home import home_option
from atenet.cli.output import output_option, show
from atenet.cli.policy_denials import denials, suggestion
from atenet.cli.policy_file import read_policy
from atenet.cli.refs import REF
from atenet.proto import ateapi_pb2 as pb
from atenet.proto.ateapi_pb2_grpc import ControlStub

__all__ = ["found_policy", "policy"]

_file_option = click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML file with the policy's rules; - reads standard input.",
)


@click.group()
def policy() -> None:
    """Say what an actor may reach, and ask what it may."""


policy.add_command(denials)
policy.add_command(suggestion)


@policy.command("set")
@click.argument("actor", type=REF)
@_file_option
@home_option
def set_(actor: pb.ObjectRef, file: str, home: Path) -> None:
    """Give an actor the egress policy of a file, in place of the one it has.

    Fields are those of EgressPolicy (docs/egress.md); an error names the line and the field.
    """
    wanted = read_policy(file)
    with asking(home) as stub:
        before = found_policy(stub, actor)
        if before is None:
            wanted.metadata.CopyFrom(pb.ResourceMetadata(atespace=actor.atespace, name="default"))
            create = pb.CreateActorEgressPolicyRequest(actor=actor, egress_policy=wanted)
            stub.CreateActorEgressPolicy(create, timeout=DEADLINE_SECONDS)
        else:
            wanted.metadata.CopyFrom(before.metadata)
            update = pb.UpdateActorEgressPolicyRequest(actor=actor, egress_policy=wanted)
            stub.UpdateActorEgressPolicy(update, timeout=DEADLINE_SECONDS)
    click.echo(f"egress policy of {actor.atespace}/{actor.name} set: {_count(wanted)}")


@policy.command()
@click.argument("actor", type=REF)
@home_option
@output_option
def get(actor: pb.ObjectRef, home: Path, output: str) -> None:
    """Show an actor's egress policy."""
    request = pb.GetActorEgressPolicyRequest(actor=actor)
    with asking(home) as stub:
        found = stub.GetActorEgressPolicy(request, timeout=DEADLINE_SECONDS)
    rows = [row for index, rule in enumerate(found.rules) for row in _rows(index, rule)]
    show(output, MessageToDict(found), ("RULE", "KIND", "HOST", "PORTS", "REPLACES"), rows)


@policy.command()
@click.argument("actor", type=REF)
@home_option
def delete(actor: pb.ObjectRef, home: Path) -> None:
    """Take an actor's egress policy away: nothing may leave it any more."""
    request = pb.DeleteActorEgressPolicyRequest(actor=actor)
    with asking(home) as stub:
        stub.DeleteActorEgressPolicy(request, timeout=DEADLINE_SECONDS)
    click.echo(f"egress policy of {actor.atespace}/{actor.name} deleted")


@policy.command()
@_file_option
def validate(file: str) -> None:
    """Check a policy file without a running system."""
    found = read_policy(file)
    click.echo(f"{file}: {_count(found)}, no fault")


@policy.command()
@click.argument("words", nargs=-1, metavar="[ACTOR] URL")
@click.option(
    "-f",
    "--file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Ask this policy file instead of the actor's policy.",
)
@home_option
@output_option
def explain(words: tuple[str, ...], file: str | None, home: Path, output: str) -> None:
    """Say what would happen to a request of an actor for a URL, and which rule decides.

    \b
    ate policy explain team/agent https://api.example.com/
    ate policy explain -f policy.yaml https://api.example.com/
    """
    from atenet.cli.policy_question import explain as asked

    if len(words) != (1 if file else 2):
        raise BadInput("name an actor and a URL, or a policy file with -f and a URL")
    found = read_policy(file) if file else _of(words[0], home)
    answer = asked(found, words[-1])
    if output == "json":
        show(output, answer.data(), (), ())
    else:
        word = "allowed" if answer.allowed else "denied"
        click.echo(f"{word}: {answer.host} port {answer.port}: {answer.text}")


def _of(word: str, home: Path) -> pb.EgressPolicy:
    """The policy of the actor of this name; one without rules if it has none."""
    actor = REF.convert(word, None, None)
    with asking(home) as stub:
        return found_policy(stub, actor) or pb.EgressPolicy()


def found_policy(stub: ControlStub, actor: pb.ObjectRef) -> pb.EgressPolicy | None:
    """The actor's policy; none: it has none. An actor that is not there is an error."""
    stub.GetActor(pb.GetActorRequest(actor=actor), timeout=DEADLINE_SECONDS)
    try:
        request = pb.GetActorEgressPolicyRequest(actor=actor)
        found: pb.EgressPolicy = stub.GetActorEgressPolicy(request, timeout=DEADLINE_SECONDS)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return None
        raise
    return found


def _count(found: pb.EgressPolicy) -> str:
    return f"{len(found.rules)} rule{'' if len(found.rules) == 1 else 's'}"


def _rows(index: int, rule: pb.EgressRule) -> list[tuple[str, ...]]:
    kind = next(
        (name for name in ("http", "https", "tls_passthrough") if rule.HasField(name)), None
    )
    if kind is None:
        return [(str(index), "-", "-", "-", "-")]
    body = getattr(rule, kind)
    effects = getattr(body, "effects", pb.HttpRuleEffects())
    replaces = ", ".join(entry.header for entry in effects.replace_headers) or "-"
    ports = _ports(kind, body)
    return [(str(index), kind, host, ports, replaces) for host in body.hostnames]


def _ports(kind: str, body: pb.HTTPRule | pb.HTTPSRule | pb.TLSPassthroughRule) -> str:
    if not body.HasField("ports"):
        return {"http": "80", "https": "443"}.get(kind, "-")
    return "all" if body.ports.HasField("all") else ", ".join(map(str, body.ports.numbers))
