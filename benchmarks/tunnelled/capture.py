"""A worker's end for the bench: Envoy, which carries each connection through a CONNECT of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from atenet.identity import spiffe
from atenet.router.binary import find_envoy

from benchmarks.path.cores import LOAD
from benchmarks.path.envoys import certificate, cluster, protocol, tcp_proxy, transport
from benchmarks.path.program import Program, free_port

__all__ = ["Capture"]

Json = dict[str, Any]


class Capture(Program):
    """`port` of 127.0.0.1: to `target` (host:port) through `proxy`; mTLS with `tunnel` where it is given."""

    def __init__(
        self,
        root: Path,
        name: str,
        proxy: tuple[str, int],
        target: str,
        tunnel: tuple[Path, Path] | None,
    ) -> None:
        self.port = free_port()
        far: Json = {**cluster("proxy", *proxy), **protocol({"http_protocol_options": {}})}
        if tunnel is not None:
            far |= _worker(*tunnel)
        through = tcp_proxy("capture", "proxy", tunneling_config={"hostname": target})
        listener = {
            "name": "capture",
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": self.port}},
            "filter_chains": [{"filters": [through]}],
        }
        file = root / f"{name}.json"
        config = {"static_resources": {"listeners": [listener], "clusters": [far]}}
        file.write_text(json.dumps(config))
        command = [find_envoy(None), "-c", file, "--concurrency", str(len(LOAD))]
        quiet = ["--disable-hot-restart", "--log-level", "error"]
        super().__init__(
            name, [*command, *quiet], cores=LOAD, log=root / f"{name}.log", keep_log=False
        )
        self.listens_on(self.port)


def _worker(credential: Path, roots: Path) -> Json:
    names = [{"san_type": "DNS", "matcher": {"exact": spiffe.EGRESS_SERVER_NAME}}]
    context = {
        "tls_certificates": [certificate(credential)],
        "alpn_protocols": ["http/1.1"],
        "tls_params": {"tls_maximum_protocol_version": "TLSv1_3"},
        "validation_context": {
            "trusted_ca": {"filename": str(roots)},
            "match_typed_subject_alt_names": names,
        },
    }
    return transport("Upstream", common_tls_context=context, sni=spiffe.EGRESS_SERVER_NAME)
