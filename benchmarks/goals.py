"""Every measure with its goal: what is promised, whether or not it can be taken yet."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GOALS", "Goal"]


@dataclass(frozen=True)
class Goal:
    """`least` or `most` bounds the value; exactly one of them is set."""

    what: str
    unit: str
    least: float | None = None
    most: float | None = None

    @property
    def bound(self) -> float:
        return self.least if self.least is not None else self.most or 0.0

    def met(self, value: float) -> bool:
        return value >= self.bound if self.least is not None else value <= self.bound

    @property
    def text(self) -> str:
        return f"{'≥' if self.least is not None else '≤'} {self.bound:g}"


GOALS = {
    "P-01": Goal("warm path, HTTP/1.1: requests per second / two stock Envoys", "ratio", least=1.5),
    "P-02": Goal("the same, HTTP/2 client", "ratio", least=1.5),
    "P-03": Goal("router CPU per request / Envoy router's", "ratio", most=0.5),
    "P-04": Goal("p99 at 70 % of the peer's best rate / the peer's p99", "ratio", most=1.0),
    "P-05": Goal("resident memory with 1 000 idle clients / Envoy's", "ratio", most=0.5),
    "P-06": Goal("1 MiB bodies, bytes per second / HAProxy with an mTLS hop", "ratio", least=0.8),
    "P-07": Goal("requests per second over 1 000 actors / over 1", "ratio", least=0.9),
    "P-08": Goal("requests per second, 100 000 cached assignments / 1 000", "ratio", least=0.9),
    "P-09": Goal("fifty requests at a sleeping actor: last answer after the resume", "ms", most=10),
    "P-10": Goal("memory per parked request", "KiB", most=16),
    "P-11": Goal("Envoy dataplane, requests per second / constant ext_proc", "ratio", least=0.9),
    "P-12": Goal("warm ResumeActor over mTLS, 64 callers, SQLite", "calls/s", least=5000),
    "P-13": Goal("the same with 1 000 000 actors stored / with 1 000", "ratio", least=0.9),
    "P-14": Goal("interception, requests per second / mitmproxy", "ratio", least=5),
    "P-15": Goal(
        "interception, requests per second / Envoy set up to do the same", "ratio", least=1
    ),
    "P-16": Goal("TLS pass-through, bytes per second / HAProxy in TCP mode", "ratio", least=0.8),
    "P-17": Goal("one policy decision among 1 000 rules", "µs", most=2),
    "P-18": Goal("decision cost with 10 000 rules / with 10", "ratio", most=1.1),
    "P-19": Goal("leaves minted per second and core", "1/s", least=2000),
    "P-20": Goal("egress on Envoy, requests per second / constant ext_proc", "ratio", least=0.85),
    "P-21": Goal("`ate up` to ready", "s", most=5),
    "P-22": Goal("cold request to a process actor, beyond the actor's own start", "ms", most=300),
    "P-23": Goal("cold request to a 10 MB gVisor actor", "ms", most=250),
    "P-24": Goal("1 000 concurrent egress tunnels", "MiB", most=100),
}
