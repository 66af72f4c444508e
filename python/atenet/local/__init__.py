"""A whole system on one machine: the state directory, the supervisor, start and stop."""

from __future__ import annotations

from atenet.local.layout import Layout, default_home
from atenet.local.settings import LocalSettings

__all__ = ["Layout", "LocalSettings", "default_home"]
