"""The whole path on the node: installed, woken, answered, asleep, woken elsewhere, out through the gateway, refused."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from atenet.local.demo.report import require

from tests.real_node.cluster import Cluster, Object, until
from tests.real_node.ground import ORIGIN
from tests.real_node.pods import Client, troubles
from tests.real_node.setup import OF_FILES

WORKERS = "ate-workers"
LIMIT = 128 << 20
_ASLEEP = ("ACTOR_STATE_SUSPENDED", "ACTOR_STATE_UNSPECIFIED")

_COMMAND = ["/usr/bin/python3", "-c", Path(__file__).with_name("actor.py").read_text()]
SPACE = "demo"
_TEMPLATE = "counter"
_URL = "https://atenet-router.ate-system.svc/"


@dataclass
class Story:
    """`owner` may make actors; `friend` is on the router's list, `stranger` is not."""

    cluster: Cluster
    owner: Client
    friend: Client
    stranger: Client
    name: str = "counter"  # the actor's

    @property
    def ref(self) -> Object:
        return {"atespace": SPACE, "name": self.name}

    def workers(self, wanted: int) -> str:
        """Each pod's record, as the control plane has it."""

        def registered() -> list[Object]:
            found = self.owner.call("ListWorkers", {})
            assert "error" not in found, found
            workers = found.get("workers", [])
            return workers if len(workers) == wanted else []

        workers = until("workers register", registered, 60, lambda: "see the pods' logs")
        return ", ".join(sorted(each["metadata"]["name"] for each in workers))

    def make_actor(self) -> str:
        self.ask("CreateAtespace", {"atespace": {"metadata": {"name": SPACE}}})
        self.ask("CreateActorTemplate", {"actorTemplate": template()})
        return self.create(_TEMPLATE)

    def create(self, template_name: str) -> str:
        of = {"atespace": SPACE, "name": template_name}
        made = self.ask("CreateActor", {"actor": {"metadata": self.ref, "actorTemplate": of}})
        return str(made["status"]["state"])

    def wake(self, count: int) -> str:
        """A request of a client with a certificate: it names the actor, and the actor sleeps."""
        before = self.state()
        require(before in _ASLEEP, f"it is {before} before the request")
        began = time.monotonic()
        said = self.count()
        took = time.monotonic() - began
        require(said["count"] == count, f"it counts {said}")
        return f"count {count} from uid {said['uid']} on {self.worker()}, with the client's start {took:.1f} s"

    def count(self) -> Object:
        """One more, and what it says of itself."""
        answer = self.friend.http("POST", _URL, ate_target_actor=f"{SPACE}/{self.name}")
        require(answer["status"] == 200, str(answer))
        said: Object = json.loads(answer["body"])
        return said

    def suspend(self) -> str:
        answer = self.ask("SuspendActor", {"actor": self.ref})
        require(self.state() == "ACTOR_STATE_SUSPENDED", str(answer))
        return str(answer["actor"]["status"]["externalSnapshot"]["snapshotUri"])

    def state(self) -> str:
        return str(self.actor()["status"]["state"])

    def worker(self) -> str:
        """The pod that has it."""
        return str(self.actor()["status"]["workerAssignment"]["workerPod"])

    def drained(self) -> str:
        """Its worker is marked: the actor is put to sleep, the pod goes, another one takes its place."""
        marked = self.worker()
        path = f"/api/v1/namespaces/{WORKERS}/pods/{marked}"
        self.cluster.patch(path, {"metadata": {"annotations": {"ate.dev/drain": "asked"}}})
        until(f"{marked} goes", lambda: self.cluster.get(path) is None, 120, self._pods_trouble)
        until("the actor sleeps", lambda: self.state() in _ASLEEP, 30, self.state)
        return f"{marked} is gone"

    def _pods_trouble(self) -> str:
        return troubles(self.cluster, WORKERS)

    def strangers_are_refused(self) -> str:
        answer = self.stranger.http("GET", _URL, ate_target_actor=f"{SPACE}/{self.name}")
        require(answer["status"] == 0, f"a client off the list is answered {answer}")
        return str(answer["body"])[:90]

    def policies_hold(self) -> str:
        """From a client's pod: the router is reached, what is behind it is not, by the kernel's rules."""
        pod = self.cluster.pods(WORKERS)[0]
        require(self.friend.connects("atenet-router.ate-system.svc", 443), "not even the router")
        for host, port in (
            ("api.ate-system.svc", 443),
            ("atenet-egress.ate-system.svc", 443),
            (pod["status"]["podIP"], 8443),
        ):
            require(not self.friend.connects(host, port), f"{host}:{port} is reached")
        return "a client's pod reaches the router; not ateapi, the gateway, a worker"

    def allow(self, host: str) -> str:
        rules = [{"http": {"hostnames": [host]}}]
        meta = {"atespace": SPACE, "name": "default"}
        self.ask(
            "CreateActorEgressPolicy",
            {"actor": self.ref, "egressPolicy": {"metadata": meta, "rules": rules}},
        )
        return host

    def nothing_is_reached(self) -> str:
        said = self.fetch("http://origin.example/")
        require(said["status"] == 0, f"it is answered {said}")
        return str(said["body"])

    def origin_is_reached(self) -> str:
        """Once the worker has read the policy, which it does every few seconds."""
        wanted = {"status": 200, "body": "hello from the origin"}
        said: list[Object] = []

        def reached() -> bool:
            said.append(self.fetch("http://origin.example/"))
            return said[-1] == wanted

        until("the origin answers", reached, 20, lambda: str(said[-1]))
        return f"200 from the origin, at request {len(said)}"

    def others_are_denied(self) -> str:
        """A name that no rule covers does not exist; its address, dialled without one, is refused with the reason."""
        named, dialled = self.fetch("http://other.example/"), self.fetch(f"http://{ORIGIN}/")
        require(named["status"] == 0, f"the name is answered {named}")
        require(dialled["status"] == 403, f"the address is answered {dialled}")
        return f"the name: {named['body']}; the address: 403 {dialled['reason']}"

    def denials_are_told(self) -> str:
        """By the control plane, which asks gateways and workers: the address by one, the name by the other."""
        said = self.ask("ListActorEgressDenials", {"actor": self.ref})
        require(not said.get("unanswered"), f"these did not answer: {said.get('unanswered')}")
        denied = {(each.get("host"), each["reason"]) for each in said.get("denials", [])}
        for host in ("other.example", ORIGIN):
            require(any(host == each for each, _ in denied), f"{host} is not among {denied}")
        return ", ".join(sorted(f"{host}: {reason}" for host, reason in denied))

    def limits(self, wanted: int = LIMIT) -> str:
        """The actor's group is in its pod's, by the uid that kubelet names it after."""
        status = self.actor()["status"]["workerAssignment"]
        uid = status["workerPodUid"]
        for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
            found = [each for each in root.glob(f"kubepods/**/*{uid}*/*/atenet/*") if each.is_dir()]
            for group in found:
                for file in ("memory.limit_in_bytes", "memory.max"):
                    if (group / file).exists():
                        limit = int((group / file).read_text())
                        require(limit == wanted, f"{group}: {limit}")
                        return f"{limit >> 20} MiB at pod{uid}/…/atenet/{group.name}"
        raise AssertionError(f"pod {uid} has no group of an actor below it")

    def fetch(self, url: str) -> Object:
        answer = self.friend.http(
            "GET", f"{_URL}?fetch={url}", ate_target_actor=f"{SPACE}/{self.name}"
        )
        require(answer["status"] == 200, str(answer))
        found: Object = json.loads(answer["body"])
        return found

    def actor(self) -> Object:
        return self.ask("GetActor", {"actor": self.ref})

    def ask(self, method: str, request: Object) -> Object:
        answer = self.owner.call(method, request)
        require("error" not in answer, f"{method}: {answer}")
        return answer


def template(
    name: str = _TEMPLATE,
    *,
    workers: dict[str, str] = OF_FILES,
    sandbox: str = "process",
    keeps: str = "DATA",
    limit: int = LIMIT,
) -> Object:
    """A counter's. `workers`: their labels; `keeps`: what its snapshots hold; `limit`: bytes of memory."""
    return {
        "metadata": {"atespace": SPACE, "name": name},
        "workerSelector": {"matchLabels": workers},
        "containers": [
            {
                "name": "counter",
                "command": _COMMAND,
                "wakeupProbe": {"httpGet": {"path": "/", "port": 80}, "timeoutSeconds": 20},
                "mounts": [{"volume": "data", "path": "/data"}],
            }
        ],
        "volumes": [{"name": "data", "durableDir": {}}],
        "snapshotConfig": {"contentScope": f"SNAPSHOT_CONTENT_SCOPE_{keeps}"},
        "sandboxConfig": {"sandboxClass": sandbox},
        "resources": {"cpuMilli": "500", "memoryBytes": str(limit)},
    }
