"""What may cross a gateway namespace: the rules as data, and their loading with nft.

The gateway namespace has no uplink and does not forward, so nothing could leave anyway. The rules
send every TCP connection that the actor opens to the capture port, leave the DNS relay open to it,
and make all else fail at once instead of hanging. Connections are tracked for the sake of those
that are captured, and only those: requests to the actor and its questions pass untracked.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from atenet.worker.network import command

__all__ = ["TABLE", "Capturing", "load", "rules"]

TABLE = {"family": "ip", "table": "atenet"}
DNS_PORT = 53

# Blocks that mean something only on this machine or on this link; metadata services are in them.
_NOWHERE = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")


@dataclass(frozen=True)
class Capturing:
    """`port`: where the actor's connections are sent to; `refused`: IPv4 addresses that it may not
    dial besides those that lead nowhere, which are the worker's own."""

    port: int = 15001
    refused: tuple[str, ...] = ()


def rules(link: str, actor: str, gateway: str, capturing: Capturing) -> dict[str, Any]:
    """`link`: the gateway end of the veth; `actor` and `gateway`: the addresses of its two ends."""
    from_actor = _match({"meta": {"key": "iifname"}}, link)
    to_actor = _match({"meta": {"key": "oifname"}}, link)
    to_gateway = _match(_field("ip", "daddr"), gateway)
    dialled = {"&": [_field("tcp", "flags"), {"|": ["syn", "ack"]}]}
    captured_answer = _match(_field("tcp", "sport"), capturing.port)
    return {
        "nftables": [
            {"add": {"table": {"family": TABLE["family"], "name": TABLE["table"]}}},
            _chain("raw-in", "filter", "prerouting", -300),
            _chain("raw-out", "filter", "output", -300),
            _chain("from-actor", "filter", "prerouting", -150),
            _chain("capture", "nat", "prerouting", -100),
            # Nobody else lives on this link.
            _rule("raw-in", from_actor, _match(_field("ip", "saddr"), actor, "!="), {"drop": None}),
            _rule("raw-in", from_actor, to_gateway, {"notrack": None}),
            _rule("raw-out", to_actor, captured_answer, {"accept": None}),
            _rule("raw-out", to_actor, {"notrack": None}),
            *(
                _rule("from-actor", from_actor, to_gateway, relay, {"accept": None})
                for relay in (
                    _match(_field("udp", "dport"), DNS_PORT),
                    _match(_field("tcp", "dport"), DNS_PORT),
                    # Answers to connections from the gateway's end.
                    _match(dialled, "syn", "!="),
                )
            ),
            _rule("from-actor", from_actor, to_gateway, _TCP, _RESET),
            _rule("from-actor", from_actor, _TCP, _to_any(capturing.refused), _RESET),
            _rule("from-actor", from_actor, _TCP, {"accept": None}),
            _rule(
                "from-actor", from_actor, {"reject": {"type": "icmp", "expr": "admin-prohibited"}}
            ),
            _rule("capture", from_actor, _TCP, {"redirect": {"port": capturing.port}}),
        ]
    }


def load(ruleset: dict[str, Any]) -> None:
    """Loads the rules into the calling thread's network namespace, all or none."""
    command.run(["nft", "-j", "-f", "-"], json.dumps(ruleset))


def _to_any(refused: Iterable[str]) -> dict[str, Any]:
    blocks = [ipaddress.IPv4Network(block) for block in _NOWHERE]
    # An address inside a block would be an overlap, which nft does not take.
    own = [ipaddress.IPv4Network(address) for address in dict.fromkeys(refused)]
    blocks += [one for one in own if not any(one.subnet_of(block) for block in blocks)]
    members = [{"prefix": {"addr": str(b.network_address), "len": b.prefixlen}} for b in blocks]
    return {"match": {"left": _field("ip", "daddr"), "op": "==", "right": {"set": members}}}


def _chain(name: str, kind: str, hook: str, priority: int) -> dict[str, Any]:
    chain = {**TABLE, "name": name, "type": kind, "hook": hook, "prio": priority}
    return {"add": {"chain": {**chain, "policy": "accept"}}}


def _rule(chain: str, *expressions: dict[str, Any]) -> dict[str, Any]:
    return {"add": {"rule": {**TABLE, "chain": chain, "expr": list(expressions)}}}


def _match(left: dict[str, Any], right: str | int, op: str = "==") -> dict[str, Any]:
    return {"match": {"left": left, "op": op, "right": right}}


def _field(protocol: str, field: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": field}}


_TCP = _match({"meta": {"key": "l4proto"}}, "tcp")
_RESET = {"reject": {"type": "tcp reset"}}
