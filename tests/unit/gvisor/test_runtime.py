from dataclasses import replace

import pytest
from atenet.gvisor import Runtime, RuntimeMismatchError

HERE = Runtime("release-1", "x86_64", ("avx", "sse"))


def test_memory_of_the_same_runsc_and_a_lesser_processor_goes_on() -> None:
    HERE.check(HERE)
    HERE.check(replace(HERE, features=("sse",)))


@pytest.mark.parametrize(
    ("saved", "reason"),
    [
        (replace(HERE, version="release-2"), "runsc release-2, this worker has release-1"),
        (replace(HERE, machine="aarch64"), "of a aarch64 processor"),
        (replace(HERE, features=("avx512", "sse")), "this one lacks: avx512"),
    ],
)
def test_other_memory_is_refused_with_what_differs(saved: Runtime, reason: str) -> None:
    with pytest.raises(RuntimeMismatchError, match=reason):
        HERE.check(saved)


def test_it_survives_its_json() -> None:
    assert Runtime.from_json(HERE.as_json()) == HERE


@pytest.mark.parametrize("given", [{}, {"version": 1, "machine": "", "features": []}])
def test_what_is_no_runtime_is_refused(given: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        Runtime.from_json(given)
