"""Small files that others read while they are written."""

from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.local.files import read_record, write_atomically


def test_a_file_is_replaced_whole_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, '{"a": 1}')
    before = path.open()
    write_atomically(path, '{"a": 2}')
    assert read_record(path) == {"a": 2}
    assert before.read() == '{"a": 1}'  # a reader that had it open saw all of the old one
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    before.close()


def test_no_file_is_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none") is None


@pytest.mark.parametrize("content", ["", "{", "[1]", "\0\0"])
def test_a_damaged_record_says_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(AteError, match="damaged") as caught:
        read_record(path)
    assert "ate down" in str(caught.value.hint)
