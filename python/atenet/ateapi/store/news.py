"""What a committed write tells at once: this control plane's own parts, and where the store can, the others'."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ActorNews", "News", "Newsroom", "Subscriber", "Topic"]

_log = logging.getLogger(__name__)


class Topic(StrEnum):
    CAPACITY = "capacity"  # a worker may have more room than before; subject: its name
    WORKER = "worker"  # a worker registered, anew or changed; subject: its name
    ACTOR = "actor"  # an actor left its assignment, or came to rest; subject: an `ActorNews`
    POLICY = "policy"  # an actor's egress policy changed; subject: the actor's uid
    ANYTHING = "anything"  # news were missed: whatever is remembered is to be looked at again


@dataclass(frozen=True)
class News:
    """A hint to look, not what is there now: that is read from the store."""

    topic: Topic
    subject: str = ""


@dataclass(frozen=True)
class ActorNews:
    """What a subject of `Topic.ACTOR` says."""

    atespace: str
    name: str
    uid: str
    version: int

    @property
    def subject(self) -> str:
        return f"{self.atespace}/{self.name}/{self.uid}/{self.version}"

    @staticmethod
    def parse(subject: str) -> ActorNews:
        atespace, name, uid, version = subject.split("/")
        return ActorNews(atespace, name, uid, int(version))


Subscriber = Callable[[News], None]


class Newsroom:
    """Tells subscribers in the order of their coming, on the event loop."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Until the returned function is called."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def publish(self, news: Iterable[News]) -> None:
        for item in news:
            for subscriber in list(self._subscribers):
                try:
                    subscriber(item)
                except Exception:  # noqa: BLE001 - one that fails must not keep it from the others
                    _log.exception("news were not taken", extra={"topic": item.topic.value})
