"""NetworkPolicies as rules of the node's kernel: what a network plugin does, for one node and IPv4.

What a policy means is the evaluator's of the tests (tests/support/network_policies.py); here each
pod's part becomes a chain, looked at once a second.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support.network_policies import Network, Pod

Object = dict[str, Any]
_LOOK_SECONDS = 1.0
_TABLE = "inet network-policies"


def ruleset(
    namespaces: Iterable[Object], policies: Iterable[Object], pods: Iterable[Object]
) -> str:
    """For `nft -f`. Pure."""
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in namespaces}
    network = Network(tuple(policies), labels)
    there = [found for each in pods if (found := _pod(each)) is not None]
    chains, jumps = [], []
    for pod in there:
        for kind, here in (("Egress", "saddr"), ("Ingress", "daddr")):
            rules = _rules(network, pod, kind, there)
            if rules is None:
                continue
            name = f"{kind.lower()}-{pod.ip.replace('.', '-')}"
            chains.append(_chain(name, rules))
            jumps.append(f"    ip {here} {pod.ip} jump {name}")
    to_node = [jump for jump in jumps if " saddr " in jump]
    return "\n".join(
        [
            f"table {_TABLE}",
            f"delete table {_TABLE}",
            f"table {_TABLE} {{",
            *chains,
            *_hook("forward", jumps),
            # The API server, the database and the bucket are the node's own addresses here.
            *_hook("input", to_node),
            "}",
            "",
        ]
    )


def _pod(made: Object) -> Pod | None:
    status = made.get("status", {})
    if made["spec"].get("hostNetwork") or not status.get("podIP"):
        return None
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    meta = made["metadata"]
    return Pod(meta["namespace"], meta.get("labels") or {}, status["podIP"])


def _rules(network: Network, pod: Pod, kind: str, there: list[Pod]) -> list[str] | None:
    """What is let through at this pod's end; None: everything, for no policy selects it."""
    selecting = [each for each in network.policies if network._selects(each, pod, kind)]
    if not selecting:
        return None
    section, side = ("egress", "to") if kind == "Egress" else ("ingress", "from")
    address = "daddr" if kind == "Egress" else "saddr"
    made = []
    for policy in selecting:
        own = policy["metadata"]["namespace"]
        for rule in policy["spec"].get(section) or []:
            for peers in _peers(network, rule.get(side), own, there, address):
                made += [f"{peers} {ports} return" for ports in _ports(rule.get("ports"))]
    return made


def _peers(
    network: Network, peers: list[Any] | None, own: str, there: list[Pod], address: str
) -> Iterator[str]:
    if not peers:
        yield ""
        return
    for peer in peers:
        block = peer.get("ipBlock")
        if block is None:
            found = sorted({pod.ip for pod in there if network._one_peer(peer, pod, own)})
            if found:
                yield f"ip {address} {{ {', '.join(found)} }}"
        elif ":" not in block["cidr"]:
            besides = ", ".join(block.get("except") or [])
            which = "" if block["cidr"] == "0.0.0.0/0" else f"ip {address} {block['cidr']} "
            yield which + (f"ip {address} != {{ {besides} }}" if besides else "")


def _ports(ports: list[Any] | None) -> Iterator[str]:
    if not ports:
        yield "meta nfproto ipv4"
        return
    for each in ports:
        protocol = each.get("protocol", "TCP").lower()
        if "port" in each:
            yield f"{protocol} dport {each['port']}-{each.get('endPort', each['port'])}"
        else:
            yield f"meta l4proto {protocol}"


def _chain(name: str, rules: list[str]) -> str:
    lines = [f"    {rule}" for rule in rules]
    return "\n".join([f"  chain {name} {{", *lines, "    counter drop", "  }"])


def _hook(hook: str, jumps: list[str]) -> list[str]:
    """A packet that one end lets through returns here: the other end has a word, too."""
    first = "    ct state established,related accept"
    head = f"    type filter hook {hook} priority 10; policy accept;"
    return [f"  chain {hook} {{", head, first, *jumps, "  }"]


class Enforcer:
    """Keeps the kernel's rules as the API server has the policies, until it is stopped."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._stopping = threading.Event()
        self._applied = ""
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def __enter__(self) -> Enforcer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def dropped(self) -> int:
        """Packets that no policy let through so far, by the chains that are there now."""
        done = subprocess.run(
            ["nft", "list", "table", *_TABLE.split()], capture_output=True, text=True, check=True
        )
        return sum(
            int(line.split()[2]) for line in done.stdout.splitlines() if "counter packets" in line
        )

    def _follow(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            wanted = ruleset(
                self._cluster.items("/api/v1/namespaces"),
                self._cluster.items("/apis/networking.k8s.io/v1/networkpolicies"),
                self._cluster.items("/api/v1/pods"),
            )
            if wanted != self._applied:
                subprocess.run(["nft", "-f", "-"], input=wanted, text=True, check=True)
                self._applied = wanted
