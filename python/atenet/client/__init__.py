"""Clients of the router: what a program needs to reach an actor by name."""

from __future__ import annotations

from atenet.client.request import Exchange, RouterRequest, exchange

__all__ = ["Exchange", "RouterRequest", "exchange"]
