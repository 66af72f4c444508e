"""Names on a command line are judged by the engine."""

import click
import pytest
from atenet.cli.refs import NAME, REF


def test_a_reference_has_two_halves() -> None:
    found = REF.convert("team-a/agent-7", None, None)
    assert (found.atespace, found.name) == ("team-a", "agent-7")
    assert REF.convert(found, None, None) is found


@pytest.mark.parametrize("text", ["agent", "a/b/c", "/b", "a/", "A/b", "a_b/c", " a/b", "a/-b"])
def test_anything_else_is_refused_with_its_reason(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not <atespace>/<name>: "):
        REF.convert(text, None, None)


def test_a_name_is_one_label() -> None:
    assert NAME.convert("team-a", None, None) == "team-a"
    with pytest.raises(click.BadParameter):
        NAME.convert("Team", None, None)
