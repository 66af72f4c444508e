from __future__ import annotations

from atenet.controller.signing.trust import plan
from hypothesis import given
from hypothesis import strategies as st

WANTED = {"pod-identity.pem": "old new"}

_namespaces = st.sampled_from(["ate-system", "default", "team-a", "team-b"])
_data = st.sampled_from([WANTED, {}, {"pod-identity.pem": "old"}])


@given(st.sets(_namespaces), st.dictionaries(_namespaces, _data))
def test_after_the_plan_exactly_those_who_need_one_have_the_bundle(
    needed: set[str], copies: dict[str, dict[str, str]]
) -> None:
    todo = plan(WANTED, needed, copies)
    after = {k: v for k, v in copies.items() if k not in todo.remove}
    after |= dict.fromkeys(todo.write, WANTED)
    assert after == dict.fromkeys(needed, WANTED)
    again = plan(WANTED, needed, after)
    assert not again.write
    assert not again.remove


def test_a_source_that_is_not_there_takes_no_bundle_away() -> None:
    todo = plan({}, {"default"}, {"default": WANTED, "team-a": WANTED})
    assert not todo.write
    assert not todo.remove
