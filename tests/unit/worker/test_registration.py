from pathlib import Path
from unittest import mock

from atenet.worker.registration import new_epoch


def test_an_epoch_is_higher_than_every_earlier_one(tmp_path: Path) -> None:
    epochs = [new_epoch(tmp_path) for _ in range(5)]
    assert epochs == sorted(set(epochs))


def test_a_clock_that_went_back_does_not_matter(tmp_path: Path) -> None:
    first = new_epoch(tmp_path)
    with mock.patch("time.time_ns", return_value=first - 10**12):
        assert new_epoch(tmp_path) == first + 1


def test_a_damaged_record_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_text("what?")
    assert new_epoch(tmp_path) > 10**18
