"""What may cross a gateway namespace: the rules as data, and their loading with nft.

The gateway namespace has no uplink and does not forward, so nothing could leave anyway; the rules
make a dial fail at once instead of hanging, and keep the actor off the gateway's own sockets.
They match without connection tracking, which every packet of every request would pay for.
"""

from __future__ import annotations

import json
from typing import Any

from atenet.worker.network import command

__all__ = ["TABLE", "closed", "load"]

TABLE = {"family": "ip", "table": "atenet"}
_CHAIN = "from-actor"


def closed(link: str, gateway: str) -> dict[str, Any]:
    """No way out: answers to connections from the gateway pass, everything else is refused.

    `link`: the gateway end of the veth; `gateway`: its address.
    """
    from_actor = _match({"meta": {"key": "iifname"}}, link)
    to_gateway = _match(_field("ip", "daddr"), gateway)
    syn = {"&": [_field("tcp", "flags"), {"|": ["syn", "ack"]}]}
    return {
        "nftables": [
            {"add": {"table": {"family": TABLE["family"], "name": TABLE["table"]}}},
            {"add": {"chain": _PREROUTING}},
            _rule(from_actor, to_gateway, _match(syn, "syn", "!="), {"accept": None}),
            _rule(from_actor, _match(_L4, "tcp"), {"reject": {"type": "tcp reset"}}),
            _rule(from_actor, {"reject": {"type": "icmp", "expr": "admin-prohibited"}}),
        ]
    }


def load(ruleset: dict[str, Any]) -> None:
    """Loads the rules into the calling thread's network namespace, all or none."""
    command.run(["nft", "-j", "-f", "-"], json.dumps(ruleset))


_L4 = {"meta": {"key": "l4proto"}}
_PREROUTING = {
    **TABLE,
    "name": _CHAIN,
    "type": "filter",
    "hook": "prerouting",
    "prio": -150,
    "policy": "accept",
}


def _rule(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"add": {"rule": {**TABLE, "chain": _CHAIN, "expr": list(expressions)}}}


def _match(left: dict[str, Any], right: str, op: str = "==") -> dict[str, Any]:
    return {"match": {"left": left, "op": op, "right": right}}


def _field(protocol: str, field: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": field}}
