"""The origin over TLS: nginx with a tiny answer and a large one."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.path.cores import LOAD
from benchmarks.path.program import Program, free_port

__all__ = ["NAME", "SecureOrigin"]

NAME = "origin.bench.example"
_LARGE = 1 << 20

_CONFIG = """
daemon off;
user root root;
worker_processes {workers};
pid {root}/secure-nginx.pid;
error_log {root}/secure-nginx.log crit;
events {{ worker_connections 8192; multi_accept on; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
    default_type text/plain;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    server {{
        listen {address}:{port} ssl backlog=8192;
        ssl_certificate {bundle};
        ssl_certificate_key {bundle};
        ssl_protocols TLSv1.3;
        location = / {{ return 200 "ok"; }}
        location / {{ root {root}/secure-www; }}
    }}
}}
"""


class SecureOrigin(Program):
    """HTTP/1.1 over TLS 1.3 on an address of its own. `bundle`: key and chain, for NAME."""

    def __init__(self, root: Path, bundle: Path) -> None:
        self.address = f"127.{random.randint(16, 250)}.{random.randint(0, 250)}.3"
        self.port = free_port()
        (root / "secure-www").mkdir()
        (root / "secure-www" / "1m").write_bytes(bytes(_LARGE))
        values = {
            "root": root,
            "address": self.address,
            "port": self.port,
            "bundle": bundle,
            "workers": len(LOAD),
        }
        config = root / "secure-nginx.conf"
        config.write_text(_CONFIG.format(**values))
        command = ["/usr/sbin/nginx", "-c", config]
        super().__init__("nginx", command, cores=LOAD, log=root / "secure-nginx.out")
        self.listens_on(self.port, self.address)
