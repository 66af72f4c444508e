"""Egress policies from YAML: what does not parse and what the engine's validator finds, by line and field."""

from __future__ import annotations

from atenet.cli.failure import BadInput
from atenet.cli.yaml_message import parse_messages, read_text
from atenet.proto import ateapi_pb2 as pb

__all__ = ["parse_policy", "read_policy"]

_AT = "egress_policy."


def read_policy(file: str) -> pb.EgressPolicy:
    """The policy of a file (`-`: standard input). Raises BadInput."""
    return parse_policy(*read_text(file))


def parse_policy(text: str, source: str) -> pb.EgressPolicy:
    """The one policy of a YAML text: `rules`, as the contract has them. Raises BadInput naming every fault."""
    from atenet._engine import validate_egress_policy

    documents = parse_messages(text, source, pb.EgressPolicy, "policy")
    if len(documents) != 1:
        raise BadInput(f"{source} holds {len(documents)} policies; an actor has one")
    (document,) = documents
    faults = [
        (field.removeprefix(_AT), message)
        for field, message in validate_egress_policy(document.message.SerializeToString())
    ]
    if faults:
        lines = [f"{source}, line {document.line(at)}: {at}: {message}" for at, message in faults]
        raise BadInput("\n".join(lines), hint="docs/egress.md says what a rule may have")
    return document.message
