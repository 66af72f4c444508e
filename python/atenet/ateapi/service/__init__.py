"""The gRPC services: one module per kind of resource, one dispatcher for all."""

from atenet.ateapi.service.dispatch import Api, generic_handlers

__all__ = ["Api", "generic_handlers"]
