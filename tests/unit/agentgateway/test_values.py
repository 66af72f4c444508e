"""Scalars of the file."""

import pytest
from atenet.agentgateway.model.values import Duration, HostPort, Share
from pydantic import TypeAdapter, ValidationError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("5s", 5000), ("100ms", 100), ("1m30s", 90000), ("1.5s", 1500), ("2h", 7200000), ("0s", 0), ("1ns", 1)],
)  # fmt: skip
def test_a_duration_is_whole_milliseconds(text: str, milliseconds: int) -> None:
    assert TypeAdapter(Duration).validate_python(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "s", "5S", "-5s", "5s ", "5 s", "5s5", 5, None, True])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="must be a duration like"):
        TypeAdapter(Duration).validate_python(text)


@pytest.mark.parametrize("text", ["api:443", "[::1]:443", "127.0.0.1:0"])
def test_an_address_is_kept(text: str) -> None:
    assert TypeAdapter(HostPort).validate_python(text) == text


@pytest.mark.parametrize(
    "text", ["", "api", ":443", "api:", "api:x", "api:65536", "a b:1", "api:٣", 5]
)
def test_what_is_no_address_is_refused(text: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(HostPort).validate_python(text)


@pytest.mark.parametrize(
    ("value", "share"), [(0.01, 0.01), (1, 1.0), ("0.5", 0.5), (True, 1.0), ("false", 0.0)]
)
def test_a_share_is_a_number_or_a_word(value: object, share: float) -> None:
    assert TypeAdapter(Share).validate_python(value) == share


@pytest.mark.parametrize("value", [-0.1, 1.1, "x", None, "nan", [1]])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Share).validate_python(value)
