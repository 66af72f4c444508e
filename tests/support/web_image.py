"""An image with one program in it, linked statically, and a file that says which one it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from atenet.images import Image, ImageStore
from atenet.images.source import fill_from
from atenet.proto import ateapi_pb2 as pb

from tests.support.actor_box import http_probe, template
from tests.support.image_archive import layer, oci_archive

CONFIG = {"Entrypoint": ["/bin/web"], "WorkingDir": "/"}
# Answers every request with how many it has had, /version as it was at its start, and as it is now.
_WEB = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static void read_version(char *into) {
  int file = open("/version", O_RDONLY);
  ssize_t got = file < 0 ? -1 : read(file, into, 15);
  into[got < 0 ? 0 : got] = 0;
  if (file >= 0) close(file);
}
int main(void) {
  char first[16], now[16], request[4096], body[64], answer[256];
  int count = 0, one = 1, here = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(80)};
  read_version(first);
  setsockopt(here, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(here, (struct sockaddr *)&where, sizeof where) || listen(here, 16)) return 1;
  for (;;) {
    int peer = accept(here, NULL, NULL);
    if (peer < 0) continue;
    ssize_t got = read(peer, request, sizeof request - 1);
    request[got < 0 ? 0 : got] = 0;
    if (strncmp(request, "GET /ready", 10)) count++;
    read_version(now);
    snprintf(body, sizeof body, "%d %s %s", count, first, now);
    int size = snprintf(answer, sizeof answer,
      "HTTP/1.1 200 OK\\r\\nconnection: close\\r\\ncontent-length: %zu\\r\\n\\r\\n%s", strlen(body), body);
    if (write(peer, answer, size) < 0) count--;
    close(peer);
  }
}
"""


def build_web(where: Path) -> bytes:
    where.mkdir(parents=True, exist_ok=True)
    (where / "web.c").write_text(_WEB)
    command = ["cc", "-static", "-O1", "-o", where / "web", where / "web.c"]
    subprocess.run(command, check=True)
    return (where / "web").read_bytes()


def import_web(store: ImageStore, where: Path, program: bytes, version: str) -> Image:
    """As the image `web`, whatever it was before."""
    files = layer({"bin/web": program, "version": version.encode()})
    source = oci_archive(where / f"{version}.tar", CONFIG, files)
    return store.add("web", str(source), lambda root: fill_from(source, root), replace=True)


def web_template(uid: str = "web-1") -> pb.ActorTemplate:
    """Of the gvisor class, on that image, with memory in its snapshots."""
    made = template(probe=http_probe("/ready"))
    made.metadata.uid = uid
    made.containers[0].image = "web"
    del made.containers[0].command[:]
    made.sandbox_config.sandbox_class = "gvisor"
    made.snapshot_config.content_scope = pb.SNAPSHOT_CONTENT_SCOPE_FULL
    return made
