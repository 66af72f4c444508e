"""Envoy's configuration as an egress gateway, built from the settings by pure functions."""

from atenet.router.resources.egress.snapshot import build_egress_snapshot

__all__ = ["build_egress_snapshot"]
