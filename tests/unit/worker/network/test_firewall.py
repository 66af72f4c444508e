from typing import Any

from atenet.worker.network import Capturing, firewall


def chain(name: str, *, refused: tuple[str, ...] = ()) -> list[list[dict[str, Any]]]:
    made = firewall.rules("atside", "169.254.17.2", "169.254.17.1", Capturing(15001, refused))
    entries = [entry["add"]["rule"] for entry in made["nftables"] if "rule" in entry["add"]]
    return [entry["expr"] for entry in entries if entry["chain"] == name]


def test_the_last_rule_refuses_all_that_no_other_rule_took() -> None:
    *_, last = chain("from-actor")
    assert [list(e) for e in last] == [["match"], ["reject"]]
    assert last[0]["match"]["right"] == "atside"


def test_nothing_but_tcp_and_questions_to_the_relay_is_accepted() -> None:
    accepting = [str(rule) for rule in chain("from-actor") if {"accept": None} in rule]
    assert len(accepting) == 4
    assert all("169.254.17.1" in rule for rule in accepting[:3])
    assert "'udp'" in accepting[0]
    assert "'daddr'" not in accepting[3]
    assert "'right': 'tcp'" in accepting[3]


def test_every_connection_that_is_left_is_redirected() -> None:
    [rule] = chain("capture")
    assert rule[-1] == {"redirect": {"port": 15001}}
    assert "daddr" not in str(rule)


def test_addresses_of_the_worker_are_refused_and_none_twice() -> None:
    own = ("10.1.2.3", "10.1.2.3", "127.0.0.5", "169.254.169.254", "240.0.0.1")
    [refusing] = [rule for rule in chain("from-actor", refused=own) if "'set'" in str(rule)]
    [members] = [m["match"]["right"]["set"] for m in refusing if "'set'" in str(m)]
    assert [m["prefix"]["addr"] for m in members[4:]] == ["10.1.2.3"]


def test_only_captured_connections_are_tracked() -> None:
    """Tracking would cost every packet of every request to the actor."""
    assert {"notrack": None} in chain("raw-in")[-1]
    captured, rest = chain("raw-out")
    assert (captured[-1], rest[-1]) == ({"accept": None}, {"notrack": None})
    assert "15001" in str(captured)
