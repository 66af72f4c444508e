"""Templates from YAML: every mistake is named by its line and field, with what is allowed there."""

from __future__ import annotations

import os
from pathlib import Path

from atenet.cli.yaml_message import parse_messages, read_text
from atenet.proto import ateapi_pb2 as pb

__all__ = ["parse_templates", "read_templates"]


def read_templates(file: str) -> list[pb.ActorTemplate]:
    """The templates of a file (`-`: standard input). Raises BadInput.

    A relative hostPath is taken from the file's directory, so that a template can stand beside
    what it mounts.
    """
    text, source = read_text(file)
    found = parse_templates(text, source)
    if file == "-":
        return found
    beside = Path(file).resolve().parent
    for volume in (v for template in found for v in template.volumes if v.host_path.path):
        volume.host_path.path = os.path.normpath(beside / volume.host_path.path)
    return found


def parse_templates(text: str, source: str) -> list[pb.ActorTemplate]:
    """One template for each YAML document. Pure. Raises BadInput."""
    documents = parse_messages(text, source, pb.ActorTemplate, "template")
    return [document.message for document in documents]
