"""Resume, suspend, delete, recover: sequences of stored steps that continue where they stopped."""

from atenet.ateapi.workflows.context import Context
from atenet.ateapi.workflows.operations import Operations

__all__ = ["Context", "Operations"]
