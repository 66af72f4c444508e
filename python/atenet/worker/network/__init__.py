"""Each activation's private network. See pair.py for its shape."""

from atenet.worker.network.addresses import own_addresses
from atenet.worker.network.firewall import Capturing
from atenet.worker.network.netns import check_prefix
from atenet.worker.network.pair import ACTOR_ADDRESS, GATEWAY_ADDRESS, NetworkPair
from atenet.worker.network.pool import PairPool
from atenet.worker.network.reconcile import clear_leftovers, hold_prefix

__all__ = [
    "ACTOR_ADDRESS",
    "GATEWAY_ADDRESS",
    "Capturing",
    "NetworkPair",
    "PairPool",
    "check_prefix",
    "clear_leftovers",
    "hold_prefix",
    "own_addresses",
]
