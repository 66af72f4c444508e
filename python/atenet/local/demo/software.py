"""The actors of the demo, as templates: httpbin and datasette from PyPI, and a counter with a file."""

from __future__ import annotations

from pathlib import Path

from atenet.errors import AteError
from atenet.proto import ateapi_pb2 as pb

__all__ = ["ATESPACE", "Software", "find_software"]

ATESPACE = "demo"
_TOP = Path(__file__).resolve().parents[4]
# Where the sandboxes see the demo's virtual environment.
_ENV = "/opt/demo"


class Software:
    """Where the software is on this machine, and the templates that run it."""

    def __init__(self, environment: Path, counter: Path, egress: Path, memory: Path) -> None:
        self.environment = environment
        self.counter = counter
        self.egress = egress
        self.memory = memory

    @property
    def host_paths(self) -> tuple[Path, ...]:
        """What workers must be allowed to mount."""
        return self.environment, self.counter, self.egress, self.memory

    def templates(self) -> list[pb.ActorTemplate]:
        return [self._counter(), self._prober(), self._httpbin(), self._datasette()]

    def remembering(self) -> list[pb.ActorTemplate]:
        """Those that need memory to be kept: a counter without a file, and Jupyter's kernel gateway,
        from a golden image and without."""
        container = pb.Container(
            name="memory",
            command=["/usr/bin/python3", "-S", "/opt/memory/memory.py"],
            wakeup_probe=pb.WakeupProbe(http_get=pb.HTTPGet(path="/", port=80), timeout_seconds=20),
            mounts=[pb.VolumeMount(volume="code", path="/opt/memory", read_only=True)],
        )
        code = pb.Volume(name="code", host_path=pb.HostPathVolume(path=str(self.memory)))
        booting = self._notebook("notebook-boot")
        booting.snapshot_config.boot_each = True
        return [
            _remembering(_template("memory", container, [code])),
            self._notebook("notebook"),
            booting,
        ]

    def _notebook(self, name: str) -> pb.ActorTemplate:
        words = ["kernel_gateway", "--KernelGatewayApp.ip=0.0.0.0", "--KernelGatewayApp.port=80"]
        return _remembering(self._from_environment(name, words, "/api"))

    def _counter(self) -> pb.ActorTemplate:
        container = pb.Container(
            name="counter",
            command=["/usr/bin/python3", "-S", "/opt/counter/counter.py"],
            env=[pb.EnvVar(name="DATA", value="/data")],
            wakeup_probe=pb.WakeupProbe(tcp_port=80, timeout_seconds=20),
            mounts=[
                pb.VolumeMount(volume="code", path="/opt/counter", read_only=True),
                pb.VolumeMount(volume="data", path="/data"),
            ],
        )
        volumes = [
            pb.Volume(name="code", host_path=pb.HostPathVolume(path=str(self.counter))),
            pb.Volume(name="data", durable_dir=pb.DurableDirVolume()),
        ]
        return _template("counter", container, volumes)

    def _prober(self) -> pb.ActorTemplate:
        container = pb.Container(
            name="prober",
            command=["/usr/bin/python3", "-S", "/opt/egress/prober.py"],
            wakeup_probe=pb.WakeupProbe(tcp_port=80, timeout_seconds=20),
            mounts=[pb.VolumeMount(volume="code", path="/opt/egress", read_only=True)],
        )
        code = pb.Volume(name="code", host_path=pb.HostPathVolume(path=str(self.egress)))
        return _template("prober", container, [code])

    def _httpbin(self) -> pb.ActorTemplate:
        words = ["gunicorn", "--bind", "0.0.0.0:80", "--threads", "8", "httpbin:app"]
        return self._from_environment("httpbin", words, "/status/200")

    def _datasette(self) -> pb.ActorTemplate:
        words = ["datasette", "serve", "--memory", "--host", "0.0.0.0", "--port", "80"]  # noqa: S104 - inside its own network
        return self._from_environment("datasette", words, "/-/versions.json")

    def _from_environment(self, name: str, words: list[str], ready: str) -> pb.ActorTemplate:
        container = pb.Container(
            name=name,
            command=[f"{_ENV}/bin/python", "-m", *words],
            env=[pb.EnvVar(name="HOME", value="/tmp")],  # noqa: S108 - the sandbox's own
            wakeup_probe=pb.WakeupProbe(
                http_get=pb.HTTPGet(path=ready, port=80), timeout_seconds=60
            ),
            mounts=[pb.VolumeMount(volume="software", path=_ENV, read_only=True)],
        )
        source = pb.HostPathVolume(path=str(self.environment))
        return _template(name, container, [pb.Volume(name="software", host_path=source)])


def _template(name: str, container: pb.Container, volumes: list[pb.Volume]) -> pb.ActorTemplate:
    return pb.ActorTemplate(
        metadata=pb.ResourceMetadata(atespace=ATESPACE, name=name),
        containers=[container],
        volumes=volumes,
        sandbox_config=pb.SandboxConfig(sandbox_class="process"),
        snapshot_config=pb.SnapshotConfig(content_scope=pb.SNAPSHOT_CONTENT_SCOPE_DATA),
    )


def _remembering(template: pb.ActorTemplate) -> pb.ActorTemplate:
    template.sandbox_config.sandbox_class = "gvisor"
    template.snapshot_config.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_FULL
    return template


def find_software() -> Software:
    """In the source tree that this package is installed from. Raises AteError."""
    examples = _TOP / "examples"
    found = Software(
        _TOP / "build" / "demo",
        examples / "counter",
        examples / "egress",
        examples / "memory",
    )
    for path in (
        found.environment / "bin" / "python",
        found.counter / "counter.py",
        found.egress / "prober.py",
        found.memory / "memory.py",
    ):
        if not path.exists():
            raise AteError(
                f"the demo's software is not set up: {path} is missing",
                hint="run `make demo` in the source tree; it sets up what it needs",
            )
    return found
