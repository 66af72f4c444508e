from atenet.worker.network import firewall


def test_the_last_rule_refuses_all_that_no_other_rule_took() -> None:
    rules = [
        entry["add"]["rule"]["expr"]
        for entry in firewall.closed("atside", "169.254.17.1")["nftables"]
        if "rule" in entry["add"]
    ]
    *_, last = rules
    assert [list(e) for e in last] == [["match"], ["reject"]]
    assert last[0]["match"]["right"] == "atside"


def test_only_answers_are_accepted() -> None:
    ruleset = firewall.closed("atside", "169.254.17.1")["nftables"]
    accepting = [
        e["add"]["rule"]["expr"] for e in ruleset if "accept" in str(e) and "rule" in e["add"]
    ]
    assert len(accepting) == 1
    (matches,) = accepting
    assert {
        "match": {
            "left": {"payload": {"protocol": "ip", "field": "daddr"}},
            "op": "==",
            "right": "169.254.17.1",
        }
    } in matches
    flags = next(m["match"] for m in matches if "&" in str(m))
    assert (flags["op"], flags["right"]) == ("!=", "syn")


def test_no_rule_tracks_connections() -> None:
    """Tracking would cost every packet of every request."""
    assert "'ct'" not in str(firewall.closed("atside", "169.254.17.1"))
