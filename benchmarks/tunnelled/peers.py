"""Who else can open TLS on the way, or pass it through: mitmproxy, Envoy, HAProxy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from atenet.identity import LocalIdentity, credential, spiffe
from atenet.identity.authority import Usage
from atenet.identity.credential import Want
from atenet.router.binary import find_envoy

from benchmarks.path.cores import PATH, THREADS
from benchmarks.path.envoys import certificate, cluster, internal, manager, protocol, transport
from benchmarks.path.program import Program, free_port
from benchmarks.tunnelled.origin import NAME, SecureOrigin

__all__ = ["MITMDUMP", "envoy", "haproxy", "mitmproxy"]

Json = dict[str, Any]
MITMDUMP = Path(__file__).resolve().parents[2] / "build" / "mitmproxy" / "bin" / "mitmdump"


def mitmproxy(root: Path, identity: LocalIdentity) -> tuple[Program, int]:
    """Intercepts what comes in a plain CONNECT; verifies origins against the bench's authority."""
    port = free_port()
    settings = {
        "confdir": root / "mitmproxy",
        "ssl_verify_upstream_trusted_ca": identity.trust("service-dns"),
        "flow_detail": 0,
        "termlog_verbosity": "error",
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [MITMDUMP, "-q", "--listen-host", "127.0.0.1"]
    program = Program(
        "mitmproxy", [*command, "-p", port, *words], cores=PATH, log=root / "mitmproxy.log"
    )
    program.listens_on(port)
    return program, port


def envoy(root: Path, identity: LocalIdentity, origin: SecureOrigin) -> tuple[Program, int]:
    """Ends the worker's mTLS CONNECT, then the TLS inside with a leaf for the origin's name, then opens its own."""
    port, file = free_port(), root / "envoy-egress.json"
    file.write_text(json.dumps(_envoy(root, identity, origin, port)))
    command = [find_envoy(None), "-c", file, "--concurrency", str(THREADS)]
    quiet = ["--disable-hot-restart", "--log-level", "error"]
    program = Program(
        "envoy", [*command, *quiet], cores=PATH, log=root / "envoy-egress.log", keep_log=False
    )
    program.listens_on(port)
    return program, port


def _envoy(root: Path, identity: LocalIdentity, origin: SecureOrigin, port: int) -> Json:
    leaf = root / "static-leaf.pem"
    want = Want(None, (NAME,), (Usage.SERVER,))
    leaf.write_bytes(credential.issue(want, identity.authority("egress-mitm")))
    connect = {
        "match": {"connect_matcher": {}},
        "route": {
            "cluster": "inside",
            "timeout": "0s",
            "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}],
        },
    }
    edge = identity.service_credential("envoy-egress", [spiffe.EGRESS_SERVER_NAME])
    actors = {"trusted_ca": {"filename": str(identity.trust("actor-identity"))}}
    outer = {
        "name": "tunnels",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {
                "filters": [manager("tunnels", [connect], log=False)],
                **transport(
                    "Downstream",
                    common_tls_context={
                        "tls_certificates": [certificate(edge)],
                        "alpn_protocols": ["http/1.1"],
                        "validation_context": actors,
                    },
                    require_client_certificate=True,
                ),
            }
        ],
    }
    shown = {"tls_certificates": [certificate(leaf)], "alpn_protocols": ["h2", "http/1.1"]}
    out = {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
    inner = {
        "name": "inside",
        "internal_listener": {},
        "filter_chains": [
            {
                "filters": [manager("inside", [out], log=False)],
                **transport("Downstream", common_tls_context=shown),
            }
        ],
    }
    names = [{"san_type": "DNS", "matcher": {"exact": NAME}}]
    roots = {"filename": str(identity.trust("service-dns"))}
    verified = {"trusted_ca": roots, "match_typed_subject_alt_names": names}
    # As a client Envoy stays at TLS 1.2 unless it is told otherwise.
    newest = {"tls_maximum_protocol_version": "TLSv1_3"}
    context = {"validation_context": verified, "tls_params": newest}
    to_origin = transport("Upstream", common_tls_context=context, sni=NAME)
    clusters = [
        internal("inside"),
        {
            **cluster("origin", origin.address, origin.port),
            **protocol({"http_protocol_options": {}}),
            **to_origin,
        },
    ]
    return {
        "static_resources": {"listeners": [outer, inner], "clusters": clusters},
        "bootstrap_extensions": [_INTERNAL],
    }


_INTERNAL = {
    "name": "envoy.bootstrap.internal_listener",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener"
    },
}

_HAPROXY = """
global
    nbthread {threads}
    maxconn 8000
defaults
    mode tcp
    timeout connect 5s
    timeout client 300s
    timeout server 300s
listen relay
    bind 127.0.0.1:{port}
    server origin {address}:{origin}
"""


def haproxy(root: Path, origin: SecureOrigin) -> tuple[Program, int]:
    """A plain TCP relay: no TLS of its own, no tunnel."""
    port, file = free_port(), root / "haproxy-relay.cfg"
    values = {
        "threads": THREADS,
        "port": port,
        "address": origin.address,
        "origin": origin.port,
    }
    file.write_text(_HAPROXY.format(**values))
    command = ["/usr/sbin/haproxy", "-db", "-f", file]
    program = Program("haproxy", command, cores=PATH, log=root / "haproxy-relay.log")
    program.listens_on(port)
    return program, port
