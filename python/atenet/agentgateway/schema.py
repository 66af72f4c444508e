"""The JSON schema of the configuration file."""

from __future__ import annotations

import json

from atenet.agentgateway.model import AgentGatewayConfig

__all__ = ["schema_text"]


def schema_text() -> str:
    """docs/agentgateway.schema.json, as it must be."""
    schema = AgentGatewayConfig.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "atenet agentgateway -f FILE"
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
