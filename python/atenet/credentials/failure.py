"""Why there is no secret. No text of these ever holds one."""

from __future__ import annotations

__all__ = ["Denied", "NotThere", "SecretsError", "Unavailable"]


class SecretsError(Exception):
    """Why there is no secret."""


class NotThere(SecretsError):
    """Nothing is kept under that name."""


class Denied(SecretsError):
    """What is there is not for this actor."""


class Unavailable(SecretsError):
    """Whoever keeps it cannot be asked now."""
