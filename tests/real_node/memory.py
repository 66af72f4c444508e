"""Actors whose memory is kept, on workers of the gvisor class: the same path, and what only memory can show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from atenet.local.demo.report import require

from tests.real_node.cluster import Object
from tests.real_node.setup import OF_MEMORY
from tests.real_node.story import SPACE, WORKERS, Story, template

_TEMPLATE = "memory"
# gVisor's kernel, Python, and what it writes.
_LIMIT = 256 << 20


@dataclass
class Memory:
    """`story`: whose clients ask. `one` tells most of it; `two` begins where its template was kept."""

    story: Story
    one: Story = field(init=False)
    two: Story = field(init=False)
    _said: Object = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.one, self.two = replace(self.story, name="one"), replace(self.story, name="two")

    def made(self) -> str:
        kind = template(_TEMPLATE, workers=OF_MEMORY, sandbox="gvisor", keeps="FULL", limit=_LIMIT)
        self.one.ask("CreateActorTemplate", {"actorTemplate": kind})
        states = [each.create(_TEMPLATE) for each in (self.one, self.two)]
        return ", ".join(states)

    def starts(self) -> str:
        """The template is booted as nobody, kept, and goes on as this actor."""
        said = self._counts(self.one, 1)
        require(said["actor"] == f"{SPACE}/one", f"it takes itself for {said['actor']!r}")
        self._said = said
        return f"count 1 from {said['actor']} on {self.one.worker()}"

    def goes_on(self, asleep: str) -> str:
        """In memory and in its file, of one boot."""
        before = self.one.state()
        require(before == f"ACTOR_STATE_{asleep}", f"it is {before}")
        said = self._counts(self.one, self._said["asked"] + 1)
        require(said["started"] == self._said["started"], "it was booted anew")
        self._said = said
        return f"count {said['asked']} on {self.one.worker()}"

    def another_begins(self) -> str:
        """From the golden image, not from a boot of its own: the time of the boot is memory."""
        said = self._counts(self.two, 1)
        require(said["started"] == self._said["started"], "it was booted by itself")
        require(said["actor"] == f"{SPACE}/two", f"it takes itself for {said['actor']!r}")
        return f"count 1 from {said['actor']} on {self.two.worker()}"

    def limits(self) -> str:
        return self.one.limits(_LIMIT)

    def paused(self) -> str:
        """Its memory is on the node, and its slot is free."""
        self.one.ask("PauseActor", {"actor": self.one.ref})
        status = self.one.actor()["status"]
        require(status["state"] == "ACTOR_STATE_PAUSED", str(status))
        require("workerPod" not in status.get("workerAssignment", {}), f"it has a slot: {status}")
        return f"kept by {status['assignedNode']}"

    def policies_hold(self) -> str:
        """No client reaches these workers either."""
        pods = self.story.cluster.pods(WORKERS)
        (pod, *_) = [each for each in pods if each["metadata"]["name"] == self.one.worker()]
        require(not self.one.friend.connects(pod["status"]["podIP"], 8443), "a worker is reached")
        return "a client's pod does not reach its worker"

    def _counts(self, actor: Story, wanted: int) -> Object:
        said = actor.count()
        numbers = (said["asked"], said["count"])
        require(numbers == (wanted, wanted), f"memory and file should have {wanted}: {said}")
        return said
