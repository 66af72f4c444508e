"""One file for both directions: each half reads as it does alone, and faults keep their place."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from atenet._engine import Router
from atenet.agentgateway import ConfigFileError, Options, load, parse, router_config
from atenet.agentgateway.model.both import BothFile
from atenet.agentgateway.untranslatable import Untranslatable

from tests.unit.agentgateway.files import text

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE = EXAMPLES / "agentgateway-both.yaml"
OPTIONS = Options("127.0.0.1")


def data() -> dict[str, Any]:
    read: dict[str, Any] = copy.deepcopy(yaml.safe_load(EXAMPLE.read_text()))
    return json.loads(json.dumps(read))  # type: ignore[no-any-return]


def test_the_example_is_both() -> None:
    file = load(EXAMPLE)
    assert isinstance(file, BothFile)
    config = router_config(file, OPTIONS)
    Router(json.dumps(config))  # the engine takes it
    assert sorted(listener["name"] for listener in config["listeners"]) == ["bind/8444", "secure"]
    assert config["control"]["credentials"]["cert"] == "/run/podidentity/router.pem"
    egress = config["egress"]
    assert (egress["name"], egress["address"]) == ("tunnels", "127.0.0.1:8443")
    assert egress["control"]["credentials"]["cert"] == "/run/podidentity/egress.pem"


@pytest.mark.parametrize("half", ["ingress", "egress"])
def test_each_half_means_what_it_means_alone(half: str) -> None:
    both = data()
    alone: dict[str, Any] = {"config": both["config"]}
    if half == "egress":
        alone |= {"frontendPolicies": both["frontendPolicies"], "binds": both["binds"][2:]}
    else:
        alone |= {key: both[key] for key in ("gateways", "routes", "backends")}
        alone["binds"] = both["binds"][:2]
    whole = router_config(parse(text(both), "x"), OPTIONS)
    for key, value in router_config(parse(text(alone), "x"), OPTIONS).items():
        assert whole[key] == value, key


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["binds"][3]["listeners"].pop(), "binds[3]"),
        (lambda d: d["binds"][2]["listeners"][0]["tls"].pop("cert"), "binds[2]"),
        (lambda d: d["binds"][1]["listeners"][0].pop("routes"), "binds[1]"),
        (lambda d: d["gateways"]["secure"].pop("port"), "gateways.secure.port"),
        (lambda d: d.update(tcpRoutes=[]), "tcpRoutes"),
    ],
)
def test_a_fault_of_either_half_is_named_by_its_place(change: Any, place: str) -> None:
    changed = data()
    change(changed)
    with pytest.raises(ConfigFileError) as caught:
        parse(text(changed), "file.yaml")
    assert any(problem.path.startswith(place) for problem in caught.value.problems), caught.value
    assert all(problem.line for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["binds"].pop(2), "binds"),
        (lambda d: d["binds"].pop(1), "binds[0]"),
        (lambda d: d["binds"].append(copy.deepcopy(d["binds"][1])), "binds[4]"),
        (lambda d: d["binds"][2].update(port=443), "binds"),
        (lambda d: d["gateways"].update(other={"port": 80}), "gateways.other"),
    ],
)
def test_parts_that_do_not_fit_together_are_named(change: Any, place: str) -> None:
    changed = data()
    change(changed)
    with pytest.raises(Untranslatable) as caught:
        router_config(parse(text(changed), "file.yaml"), OPTIONS)
    assert caught.value.problem.path == place
