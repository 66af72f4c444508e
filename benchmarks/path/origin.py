"""The tiny actor: nginx with three answers, on the load's cores, so that it never limits the path."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.path.cores import LOAD
from benchmarks.path.program import Program

__all__ = ["BODIES", "Origin"]

# path -> bytes of the answer's body
BODIES = {"/": 2, "/1k": 1024, "/1m": 1 << 20}

_CONFIG = """
daemon off;
user root root;
worker_processes {workers};
worker_rlimit_nofile 19000;
pid {root}/nginx.pid;
error_log {root}/nginx.log crit;
events {{ worker_connections 8192; multi_accept on; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
    open_file_cache max=16 inactive=1h;
    default_type text/plain;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    server {{
        listen {address}:80 backlog=8192;
        location = / {{ return 200 "ok"; }}
        location / {{ root {root}/www; }}
    }}
}}
"""


class Origin(Program):
    """Listens on port 80 of a loopback address of its own, as an actor does on its network."""

    def __init__(self, root: Path) -> None:
        self.address = f"127.{random.randint(16, 250)}.{random.randint(0, 250)}.2"
        (root / "www").mkdir()
        for path, size in BODIES.items():
            if path != "/":
                (root / "www" / path[1:]).write_bytes(bytes(size))
        config = root / "nginx.conf"
        config.write_text(_CONFIG.format(root=root, address=self.address, workers=len(LOAD)))
        super().__init__(
            "nginx", ["/usr/sbin/nginx", "-c", config], cores=LOAD, log=root / "nginx.out"
        )
        self.listens_on(80, self.address)
