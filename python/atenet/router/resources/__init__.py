"""Envoy's configuration, built from the settings by pure functions."""

from atenet.router.resources.snapshot import Snapshot, build_snapshot

__all__ = ["Snapshot", "build_snapshot"]
