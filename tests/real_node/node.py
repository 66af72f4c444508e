"""containerd, kubelet and kube-proxy as processes, with their files below one directory."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.real_node.ground import ADDRESS, NAMES, PODS, run
from tests.real_node.images import PAUSE

NAME = "node-1"
_START_SECONDS = 60.0
_CNI = "/usr/lib/cni"


@dataclass
class RealNode:
    """`programs`: where containerd, its shim, ctr, and `kube-node` are."""

    directory: Path
    programs: Path
    kube_node: Path
    ca: Path
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    @property
    def socket(self) -> Path:
        return self.directory / "containerd.sock"

    def start_containerd(self) -> None:
        """Until it answers."""
        network = self.directory / "cni"
        network.mkdir()
        (network / "10-pods.conflist").write_text(json.dumps(_network()))
        config = self.directory / "containerd.toml"
        config.write_text(_containerd(self.directory, network))
        path = f"{self.programs}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._run(
            "containerd", str(self.programs / "containerd"), "--config", str(config), path=path
        )
        self._until("containerd", lambda: self._ctr_ok("version"))

    def import_images(self, archive: Path) -> None:
        self.ctr("images", "import", "--local", "--all-platforms", str(archive))

    def ctr(self, *words: str) -> str:
        """In the namespace that kubelet uses."""
        return run(str(self.programs / "ctr"), "-a", str(self.socket), "-n", "k8s.io", *words)

    def image_has(self, image: str, file: str) -> bool:
        """`file`: without the first slash."""
        target = self.directory / "image"
        target.mkdir()
        self.ctr("images", "mount", image, str(target))
        try:
            return (target / file).exists()
        finally:
            self.ctr("images", "unmount", "--rm", str(target))
            target.rmdir()

    def start_kubelet(self, kubeconfig: Path) -> None:
        file = self.directory / "kubelet.yaml"
        file.write_text(yaml.safe_dump(_kubelet(self.socket, self.ca, self.directory)))
        self._run(
            "kubelet",
            *(str(self.kube_node), "kubelet", f"--config={file}", f"--kubeconfig={kubeconfig}"),
            *(f"--hostname-override={NAME}", f"--node-ip={ADDRESS}", "--v=2"),
        )

    def start_proxy(self, kubeconfig: Path) -> None:
        file = self.directory / "proxy.yaml"
        file.write_text(yaml.safe_dump(_proxy(kubeconfig)))
        self._run("kube-proxy", str(self.kube_node), "kube-proxy", f"--config={file}")

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def ended(self) -> list[str]:
        """Which of them are not running any more."""
        return [name for name, each in self._processes.items() if each.poll() is not None]

    def _ctr_ok(self, *words: str) -> bool:
        try:
            self.ctr(*words)
        except RuntimeError:
            return False
        return True

    def _until(self, name: str, there: object) -> None:
        assert callable(there)
        deadline = time.monotonic() + _START_SECONDS
        while not there():
            assert self._processes[name].poll() is None, self.log(name)[-4000:]
            assert time.monotonic() < deadline, f"{name} does not answer: {self.log(name)[-4000:]}"
            threading.Event().wait(0.2)

    def _run(self, name: str, *command: str, path: str | None = None) -> None:
        environment = {
            "PATH": path or "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
        }
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )


def _containerd(directory: Path, network: Path) -> str:
    """It may not raise its own importance where CAP_SYS_RESOURCE is missing, so it does not try."""
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    return f"""\
version = 3
root = '{directory}/containerd'
state = '/run/containerd'

[grpc]
address = '{directory}/containerd.sock'

[ttrpc]
address = '{directory}/containerd.sock.ttrpc'

[{runtime}]
restrict_oom_score_adj = true
enable_cdi = false

[{runtime}.cni]
bin_dirs = ['{_CNI}']
conf_dir = '{network}'

[{runtime}.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{PAUSE}'
"""


def _network() -> dict[str, object]:
    """A link for each pod: what goes from one to another passes the node's own rules."""
    pods = {
        "type": "host-local",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni-addresses",
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": pods}],
    }


def _kubelet(socket: Path, ca: Path, directory: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{socket}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [NAMES],
        "clusterDomain": "cluster.local",
        # The machine's own may name a resolver on loopback.
        "resolvConf": "",
        "authentication": {"x509": {"clientCAFile": str(ca)}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "volumePluginDir": str(directory / "plugins"),
        # The machine's disk is not the node's to judge.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "oomScoreAdj": 0,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "configMapAndSecretChangeDetectionStrategy": "Watch",
        "maxPods": 110,
        "registerNode": True,
    }


def _proxy(kubeconfig: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NAME,
        "clusterCIDR": PODS,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
