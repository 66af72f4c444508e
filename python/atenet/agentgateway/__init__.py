"""The native dataplane: AgentGateway's static configuration in, engine router out."""

from atenet.agentgateway.load import ConfigFileError, Problem, load, parse
from atenet.agentgateway.model import AgentGatewayConfig
from atenet.agentgateway.options import Options
from atenet.agentgateway.schema import schema_text
from atenet.agentgateway.translate import router_config

__all__ = [
    "AgentGatewayConfig",
    "ConfigFileError",
    "Options",
    "Problem",
    "load",
    "parse",
    "router_config",
    "schema_text",
]
