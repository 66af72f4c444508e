"""AgentGateway's static file format, the part that carries ingress, as pydantic models.

Keys are camelCase as in the file; unknown ones are errors. Fields marked `unused` are
read so that one file can drive either program, and named in a notice when they are set.
"""

from atenet.agentgateway.model.base import Part, is_unused, unused_keys
from atenet.agentgateway.model.document import AgentGatewayConfig

__all__ = ["AgentGatewayConfig", "Part", "is_unused", "unused_keys"]
