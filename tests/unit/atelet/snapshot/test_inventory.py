"""What is collected, and what is not."""

import time
from pathlib import Path

import pytest
from atenet.atelet.snapshot.inventory import Inventory
from atenet.errors import AteError
from atenet.snapshots import open_objects


def _store(where: Path) -> Inventory:
    objects = open_objects(str(where))
    for name in ("one", "two"):
        objects.put(f"team/uid/{name}/manifest.json", b"{}")
    return Inventory(objects)


def test_what_no_record_names_is_collected(tmp_path: Path) -> None:
    store = _store(tmp_path / "store")
    listed = list(store.look())
    gone = store.collect(listed, {listed[0].uri}, before=time.time() + 1, remove=True)
    assert [each.key for each in gone] == ["team/uid/two"]
    assert [each.key for each in store.look()] == ["team/uid/one"]


@pytest.mark.parametrize("remove", [True, False])
def test_nothing_is_collected_from_a_store_that_was_moved(tmp_path: Path, remove: bool) -> None:
    before = {each.uri for each in _store(tmp_path / "store").look()}
    (tmp_path / "store").rename(tmp_path / "moved")
    moved = Inventory(open_objects(str(tmp_path / "moved")))
    listed = list(moved.look())
    assert len(listed) == 2
    with pytest.raises(AteError, match="records name 2 snapshots that are not in file:"):
        moved.collect(listed, before, before=time.time() + 1, remove=remove)
    assert list(moved.look()) == listed
