"""A pod's containers as processes here: own network and mounts, read-only root, the manifest's flags and hooks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from atenet._engine import socket_in_netns
from atenet.router.binary import find_envoy

from tests.support.eventually import within
from tests.support.kube_way import Address, KubeWays, Target

Object = dict[str, Any]

_START_SECONDS = 60.0
_REPOSITORY = Path(__file__).resolve().parents[2]
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ETC = ("ssl", "ld.so.cache", "passwd", "group", "nsswitch.conf", "ca-certificates")


class PodProcess:
    """One container's process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")


class KubePod:
    """Made by `running`. `containers`: by name, those that stay."""

    def __init__(
        self,
        spec: Object,
        files: Mapping[str, Path],
        directory: Path,
        hosts: Mapping[str, str],
        ways: Mapping[Address, Target],
        env: Mapping[str, str],
    ) -> None:
        self.spec = spec
        self._files = files
        self.directory = directory
        self._hosts = hosts
        self._ways_out = ways
        self._env = env
        self._ways = KubeWays()
        self._network: asyncio.subprocess.Process
        self.containers: dict[str, PodProcess] = {}

    @property
    def netns(self) -> str:
        """Path of its network namespace."""
        return f"/proc/{self._network.pid}/ns/net"

    async def connect(self, port: int, host: str = "127.0.0.1") -> socket.socket:
        """A connection to one of its ports, from inside. Raises OSError."""
        sock = socket.socket(fileno=socket_in_netns(self.netns))
        try:
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except OSError:
            sock.close()
            raise
        return sock

    async def get(self, port: int, path: str) -> int | None:
        """The status that a page answers with; None: nobody listens."""
        try:
            sock = await self.connect(port)
        except OSError:
            return None
        reader, writer = await asyncio.open_connection(sock=sock)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\nhost: pod\r\n\r\n".encode())
            line = await within(reader.readline(), 5)
            return int(line.split()[1]) if line else None
        finally:
            writer.close()

    async def start(self) -> None:
        """Containers that come first one after the other, then the others at once; until all are ready."""
        self._network = await asyncio.create_subprocess_exec(
            *(
                "unshare",
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo up && exec sleep infinity",
            ),
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._network.stdout is not None
        assert await self._network.stdout.readline() == b"up\n"
        await self._ways.open(self.netns, self._ways_out)
        for container in self.spec.get("initContainers", []):
            running = await self._run(container, container["command"] + container["args"])
            if container.get("restartPolicy") == "Always":
                self.containers[container["name"]] = running
                await self._probed(container, "startupProbe")
            else:
                assert await running.process.wait() == 0, f"{running.name}: {running.log}"
        for container in self.spec["containers"]:
            self.containers[container["name"]] = await self._run(
                container, container["command"] + container["args"]
            )
        for container in self.spec["containers"]:
            await self._probed(container, "readinessProbe")

    async def _probed(self, container: Object, kind: str) -> None:
        ends = time.monotonic() + _START_SECONDS
        running = self.containers[container["name"]]
        while not await self.passes(container, kind):
            assert running.process.returncode is None, f"{running.name} ended: {running.log}"
            assert time.monotonic() < ends, f"{running.name} is not ready: {running.log}"
            await asyncio.sleep(0.05)

    async def passes(self, container: Object, kind: str = "readinessProbe") -> bool:
        """What kubelet would find."""
        probe = container[kind]
        if "exec" in probe:
            inside = str(self.containers[container["name"]].process.pid)
            words = ["nsenter", "--target", inside, "--mount", "--root", *probe["exec"]["command"]]
            ran = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
            return await ran.wait() == 0
        if "httpGet" in probe:
            return await self.get(probe["httpGet"]["port"], probe["httpGet"]["path"]) == 200
        try:
            (await self.connect(probe["tcpSocket"]["port"])).close()
        except OSError:
            return False
        return True

    async def ready(self) -> bool:
        """Whether its Services would send it anything."""
        return all([await self.passes(each) for each in self.spec["containers"]])

    async def terminate(self) -> dict[str, int]:
        """As kubelet does it: each container's hook, then SIGTERM, and SIGKILL when the grace is over. Exit codes."""
        limit = self.spec["terminationGracePeriodSeconds"]
        staying = [each["name"] for each in self.spec["containers"]]
        await asyncio.gather(*(self._end(each, limit) for each in self.spec["containers"]))
        for name in reversed([name for name in self.containers if name not in staying]):
            self.containers[name].process.send_signal(signal.SIGTERM)
            await within(self.containers[name].process.wait(), limit)
        return {name: each.process.returncode or 0 for name, each in self.containers.items()}

    async def _end(self, container: Object, limit: float) -> None:
        running = self.containers[container["name"]]
        hook = container.get("lifecycle", {}).get("preStop", {}).get("exec")
        async with asyncio.timeout(limit):
            sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep")
            if sleep is not None:
                await asyncio.sleep(sleep["seconds"])
            if hook is not None:
                ran = await self._run(
                    {**container, "name": f"{running.name}-hook"}, hook["command"]
                )
                assert await ran.process.wait() == 0, ran.log
            if running.process.returncode is None:
                running.process.send_signal(signal.SIGTERM)
            await running.process.wait()

    async def close(self) -> None:
        """Nothing of it is left."""
        await self._ways.close()
        for process in [*(each.process for each in self.containers.values()), self._network]:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _run(self, container: Object, command: list[str]) -> PodProcess:
        name = container["name"]
        root, log = self.directory / f"{name}.root", self.directory / f"{name}.log"
        root.mkdir()
        script = self.directory / f"{name}.sh"
        variables = {
            each["name"]: each["value"] if "value" in each else self._env[each["name"]]
            for each in container.get("env", [])
        }
        words = [
            re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), each) for each in command
        ]
        script.write_text(
            "\n".join([*self._mounts(container, root), self._exec(container, root, words)])
        )
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(
                    "nsenter",
                    f"--net={self.netns}",
                    "unshare",
                    "--mount",
                    "--propagation",
                    "private",
                ),
                *("sh", "-eu", str(script)),
                stdout=output,
                stderr=output,
                env={"PATH": f"/opt/image:{Path(sys.executable).parent}:{_SYSTEM}", **variables},
            )
        return PodProcess(name, process, log)

    def _mounts(self, container: Object, root: Path) -> list[str]:
        lines = [f"mount -t tmpfs -o mode=755 image {root}"]
        for path in dict.fromkeys(("/usr", str(_REPOSITORY), sys.base_prefix, sys.prefix)):
            lines += _bind(path, f"{root}{path}", read_only=True)
        lines += [f"cp -a {path} {root}{path}" for path in ("/bin", "/sbin", "/lib", "/lib64")]
        lines += [
            f"mkdir -p {root}/etc {root}/proc {root}/dev {root}/opt/image",
            f"mount -t proc proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
            *(f"[ ! -e /etc/{name} ] || cp -a /etc/{name} {root}/etc/" for name in _ETC),
            f"ln -s {find_envoy(None)} {root}/opt/image/envoy",
        ]
        entries = "".join(
            f"{ip} {name}\n" for name, ip in {"localhost": "127.0.0.1", **self._hosts}.items()
        )
        lines.append(f"printf %s {shlex.quote(entries)} > {root}/etc/hosts")
        for mount in container["volumeMounts"]:
            source = self._volume(mount["name"])
            lines += _bind(str(source), f"{root}{mount['mountPath']}", read_only=mount["readOnly"])
        if container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append(f"mount -o remount,ro {root}")
        return lines

    def _volume(self, name: str) -> Path:
        """What a test gave, or an empty directory that the containers share."""
        if name in self._files:
            return self._files[name]
        made = self.directory / "volumes" / name
        if not made.exists():
            made.mkdir(parents=True)
            group = self.spec["securityContext"].get("fsGroup", 0)
            os.chown(made, 0, group)
            made.chmod(0o2777)
        return made

    def _exec(self, container: Object, root: Path, words: list[str]) -> str:
        security = container["securityContext"]
        added = security["capabilities"].get("add", [])
        kept = ",".join(["-all", *(f"+{each.lower()}" for each in added)])
        account = [f"--reuid={security['runAsUser']}", f"--regid={security['runAsGroup']}"]
        group = self.spec["securityContext"].get("fsGroup")
        groups = f"--groups={group}" if group else "--clear-groups"
        become = [
            "setpriv",
            *account,
            groups,
            f"--bounding-set={kept}",
            f"--inh-caps={kept}",
            "--no-new-privs",
        ]
        return shlex.join(["exec", "chroot", str(root), *become, "--", *words])


def _bind(source: str, target: str, *, read_only: bool) -> list[str]:
    lines = [f"mkdir -p {target}", f"mount --bind {source} {target}"]
    return [*lines, f"mount -o remount,bind,ro {target}"] if read_only else lines


@asynccontextmanager
async def running(
    spec: Object,
    files: Mapping[str, Path],
    directory: Path,
    hosts: Mapping[str, str] | None = None,
    ways: Mapping[Address, Target] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[KubePod]:
    """`spec`: a pod's; `files`: what is in its volumes, by their names; the others are empty. Needs root.

    `ways`: addresses inside that lead to others on this machine. `env`: variables that the cluster would look up.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pod = KubePod(spec, files, directory, hosts or {}, ways or {}, env or {})
    try:
        await pod.start()
        yield pod
    finally:
        await pod.close()
