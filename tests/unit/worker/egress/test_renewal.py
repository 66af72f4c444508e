"""When the next certificate is asked for."""

import pytest
from atenet.worker.egress.renewal import after_failure, after_success


# B134
@pytest.mark.conformance("E-03")
def test_a_certificate_is_renewed_when_nine_tenths_of_its_life_are_over() -> None:
    assert after_success(3600) == 3240
    assert after_success(10) == 9


def test_no_life_is_no_reason_to_spin() -> None:
    assert after_success(0) == after_success(-5) == after_success(0.1) == 1


# B134
@pytest.mark.conformance("E-03")
def test_a_failed_renewal_is_tried_again_more_often_towards_the_end() -> None:
    assert [after_failure(left, 1, 0.5) for left in (3600, 360, 100, 20, 5, 0.01)] == [
        *(30, 30, 10, 2, 1, 1),
    ]


# B134
@pytest.mark.conformance("E-03")
def test_after_the_end_it_is_tried_soon_and_then_less_and_less() -> None:
    steps = [after_failure(-1, failures, 0.5) for failures in range(1, 8)]
    assert steps == [1, 2, 4, 8, 16, 30, 30]
    assert after_failure(-1, 10**6, 0.5) == 30
    spread = {after_failure(-1, 9, jitter) for jitter in (0, 0.25, 0.5, 1)}
    assert len(spread) == 4
    assert min(spread) > 25
    assert max(spread) < 35
