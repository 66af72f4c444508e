"""The JSON schemas of the configuration file: an ingress router's, an egress gateway's, and both in one."""

from __future__ import annotations

import json

from atenet.agentgateway.model import AgentGatewayConfig, Part
from atenet.agentgateway.model.both import BothFile
from atenet.agentgateway.model.egress import EgressFile

__all__ = ["both_schema_text", "egress_schema_text", "schema_text"]


def schema_text() -> str:
    """docs/agentgateway.schema.json, as it must be."""
    return _text(AgentGatewayConfig, "atenet agentgateway -f FILE")


def egress_schema_text() -> str:
    """docs/agentgateway-egress.schema.json, as it must be."""
    return _text(EgressFile, "atenet agentgateway -f FILE, of an egress gateway")


def both_schema_text() -> str:
    """docs/agentgateway-both.schema.json, as it must be."""
    return _text(BothFile, "atenet agentgateway -f FILE, ingress and egress")


def _text(model: type[Part], title: str) -> str:
    schema = model.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = title
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
