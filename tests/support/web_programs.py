"""Programs that people's actors run, as they fetch from a web server: the command, and what it says of success."""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.origins import Exchange, Handler

HELLO = b"hello from the origin"

_URLLIB = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
_REQUESTS = (
    "import sys, requests; r = requests.get(sys.argv[1]); r.raise_for_status(); print(r.text)"
)
_FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log)"


@dataclass(frozen=True)
class Program:
    """`command`: words in which {host}, {port}, {url}, {bundle}, {scratch}, {python} stand for what is there."""

    command: tuple[str, ...]
    says: str

    def words(self, **places: str) -> list[str]:
        return [word.format(**places) if "{" in word else word for word in self.command]


_HELLO = HELLO.decode()
PROGRAMS: Mapping[str, Program] = {
    "curl": Program(("curl", "-fsS", "{url}/hello"), _HELLO),
    "git": Program(("git", "ls-remote", "{url}/repository.git"), "refs/heads/main"),
    "Python ssl": Program(("{python}", "-c", _URLLIB, "{url}/hello"), _HELLO),
    "requests": Program(("{python}", "-c", _REQUESTS, "{url}/hello"), _HELLO),
    "Node fetch": Program(("node", "-e", _FETCH, "{url}/hello"), _HELLO),
    "pip": Program(
        (
            *(
                "{python}",
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--no-cache-dir",
                "-d",
                "{scratch}",
            ),
            *("--disable-pip-version-check", "--retries", "0", "-i", "{url}/simple", "tinypackage"),
        ),
        "tinypackage-1.0-py3-none-any.whl",
    ),
    "openssl, strict": Program(
        (
            *("openssl", "s_client", "-x509_strict", "-verify_return_error", "-brief"),
            *("-verify_hostname", "{host}", "-CAfile", "{bundle}"),
            *("-connect", "{host}:{port}", "-servername", "{host}"),
        ),
        "Verification: OK",
    ),
}


def files(content: Mapping[str, bytes]) -> Handler:
    """An origin that has these files, by path; anything else is 404."""

    async def handler(exchange: Exchange) -> None:
        await exchange.read_body()
        found = content.get(exchange.path)
        status, body = (404, b"") if found is None else (200, found)
        kind = "text/html" if exchange.path.startswith("/simple/") else "application/octet-stream"
        await exchange.answer(status, body, ("content-type", kind))

    return handler


def site(scratch: Path) -> dict[str, bytes]:
    """What all the programs ask for: a text, a repository, a package index. `scratch`: an empty directory."""
    return {"/hello": HELLO, **_repository(scratch), **_index()}


def _repository(scratch: Path) -> dict[str, bytes]:
    """A repository for git's protocol of plain files."""
    work, bare = scratch / "work", scratch / "repository.git"
    author = ["-c", "user.name=a", "-c", "user.email=a@a.example"]
    for words in (
        ["init", "-q", "-b", "main", str(work)],
        ["-C", str(work), *author, "commit", "-q", "--allow-empty", "-m", "first"],
        ["clone", "-q", "--bare", str(work), str(bare)],
        ["-C", str(bare), "update-server-info"],
    ):
        subprocess.run(["git", *words], check=True)
    found = (path for path in bare.rglob("*") if path.is_file())
    return {f"/{path.relative_to(scratch)}": path.read_bytes() for path in found}


def _index() -> dict[str, bytes]:
    name = "tinypackage-1.0"
    info = f"{name}.dist-info"
    members = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinypackage\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        for path, text in members.items():
            wheel.writestr(path, text)
    file = f"{name}-py3-none-any.whl"
    page = f'<!DOCTYPE html><html><body><a href="/files/{file}">{file}</a></body></html>'
    return {"/simple/tinypackage/": page.encode(), f"/files/{file}": packed.getvalue()}


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
