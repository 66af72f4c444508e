"""What a person is told of a call that the control plane did not answer as hoped."""

import grpc
import pytest
from atenet.cli.control import _diagnosis
from atenet.cli.failure import BadInput, NoSuchThing, NotReachable

Code = grpc.StatusCode


@pytest.mark.parametrize("code", [c for c in Code if c is not Code.OK and c is not Code.UNKNOWN])
def test_whatever_it_answers_a_hint_says_what_to_do(code: grpc.StatusCode) -> None:
    told = _diagnosis(code, "it did not", "127.0.0.1:1", None)
    assert "it did not" in told.message
    if code not in (Code.CANCELLED, Code.OUT_OF_RANGE, Code.UNIMPLEMENTED, Code.DATA_LOSS):
        assert told.hint or code is Code.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.NOT_FOUND, NoSuchThing),
        (Code.INVALID_ARGUMENT, BadInput),
        (Code.ALREADY_EXISTS, BadInput),
        (Code.UNAVAILABLE, NotReachable),
    ],
)
def test_codes_are_told_apart_by_how_the_command_exits(code: grpc.StatusCode, kind: type) -> None:
    assert type(_diagnosis(code, "it did not", "127.0.0.1:1", None)) is kind


def test_a_command_knows_better_what_must_be_so_first() -> None:
    told = _diagnosis(Code.FAILED_PRECONDITION, "demo/one is RUNNING", "127.0.0.1:1", "--force")
    assert told.hint == "--force"
    other = _diagnosis(Code.ABORTED, "busy", "127.0.0.1:1", "--force")
    assert other.hint != "--force"
