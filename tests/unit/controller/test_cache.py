"""What is known of the API server: newer words replace older ones, whoever brings them first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from atenet.controller.cache import Cache, Key, key_of


def thing(name: str, version: int, *, pool: str = "p", uid: str = "", namespace: str = "n") -> Any:
    metadata = SimpleNamespace(
        name=name, namespace=namespace, resourceVersion=str(version), uid=uid or f"uid-{name}"
    )
    return SimpleNamespace(metadata=metadata, pool=pool)


class _Heard:
    def __init__(self) -> None:
        self.changed: list[Key] = []
        self.removed: list[str] = []
        self.cache: Cache[Any] = Cache(
            lambda t: Key("n", t.pool) if t.pool else None,
            self.changed.append,
            lambda t: self.removed.append(t.metadata.uid),
        )

    def names(self, pool: str = "p") -> set[str]:
        return {t.metadata.name for t in self.cache.group(Key("n", pool))}


def test_an_older_word_never_replaces_a_newer_one() -> None:
    heard = _Heard()
    new = thing("a", 5)
    heard.cache.take(new)
    heard.cache.take(thing("a", 4))
    assert heard.cache.get(key_of(new)) is new
    assert heard.changed == [Key("n", "p")]


def test_what_is_gone_does_not_come_back_by_a_late_answer() -> None:
    heard = _Heard()
    heard.cache.take(thing("a", 5))
    heard.cache.drop(thing("a", 7))
    heard.cache.take(thing("a", 6))
    assert heard.names() == set()
    assert heard.removed == ["uid-a"]


def test_one_s_own_creation_outlives_a_list_that_was_begun_before_it() -> None:
    heard = _Heard()
    heard.cache.take(thing("old", 3))
    heard.cache.take(thing("own", 12))
    heard.cache.replace([thing("other", 4)], version=10)
    assert heard.names() == {"own", "other"}
    assert heard.removed == ["uid-old"]


def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    heard = _Heard()
    heard.cache.take(thing("elsewhere", 3, namespace="m"))
    heard.cache.replace([], version=10, namespace="n")
    assert heard.names() == {"elsewhere"}


def test_another_of_the_same_name_is_another() -> None:
    heard = _Heard()
    heard.cache.take(thing("a", 5, uid="first"))
    heard.cache.take(thing("a", 9, uid="second"))
    assert heard.removed == ["first"]
    heard.cache.drop(thing("a", 8, uid="first"))
    assert heard.names() == {"a"}


def test_a_change_of_group_calls_for_both() -> None:
    heard = _Heard()
    heard.cache.take(thing("a", 5, pool="p"))
    heard.cache.take(thing("a", 6, pool="q"))
    assert (heard.names("p"), heard.names("q")) == (set(), {"a"})
    assert heard.changed == [Key("n", "p"), Key("n", "p"), Key("n", "q")]
