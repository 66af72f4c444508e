"""`ate-setup` against the tests' API server, as a person runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atenet.errors import AteError
from atenet.setup.main import ate_setup
from click.testing import CliRunner

from tests.support.kube_cluster import KubeCluster
from tests.unit.setup.rendered import CLIENT

Object = dict[str, Any]
LEAST = ("--ingress-allowed-spiffe-ids", CLIENT, "--snapshots", "s3://bucket/prefix")
# What a cluster keeps for itself, and what passes.
_PASSING = {"events", "leases", "endpoints", "endpointslices", "componentstatuses", "flowschemas"}
# What a cluster's own controllers make in each namespace, a moment after it, and for themselves.
_IN_EACH_NAMESPACE = {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
_OF_CONTROLLERS = ("serviceaccounts", "kube-system")


@dataclass(frozen=True)
class Done:
    """How a command ended: what it printed and said, and its complaint."""

    out: str
    err: str
    error: AteError | None

    @property
    def complaint(self) -> str:
        assert self.error is not None, self.out + self.err
        return str(self.error)


@dataclass(frozen=True)
class Setup:
    """One cluster's administrator, with a file that holds the database's URL."""

    kube: KubeCluster
    directory: Path

    async def run(self, command: str, *words: str, kubeconfig: Path | None = None) -> Done:
        """In a thread: the command has a loop of its own."""
        return await asyncio.to_thread(self._run, command, *words, kubeconfig=kubeconfig)

    def installed(self, *words: str) -> Setup:
        """For a fixture that many tests share."""
        given = ("install", *LEAST, *self.database, "--no-wait", *words)
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(self._run, *given).result()
        assert done.error is None, done.complaint
        return self

    def _run(self, command: str, *words: str, kubeconfig: Path | None = None) -> Done:
        given = ["--kubeconfig", str(kubeconfig or self.kube.admin_kubeconfig), *words]
        result = CliRunner().invoke(ate_setup, [command, *given])
        error = result.exception
        if error is not None and not isinstance(error, AteError | SystemExit):
            raise error
        return Done(result.stdout, result.stderr, error if isinstance(error, AteError) else None)

    async def ok(self, command: str, *words: str, **how: Any) -> Done:
        done = await self.run(command, *words, **how)
        assert done.error is None, done.complaint
        return done

    @property
    def database(self) -> tuple[str, str]:
        """The flag that makes the Secret."""
        file = self.directory / "url"
        file.write_text("postgresql://ate:s3cr3t@db.example/ate\n")
        return "--database-url-file", str(file)

    async def install(self, *words: str) -> Done:
        """Applied, and not waited for: no node is real."""
        return await self.ok("install", *LEAST, *self.database, "--no-wait", *words)

    def everything(self) -> dict[str, str]:
        """Every object of every kind that the cluster has, with the uid of each."""
        found = {}
        with self.kube.http() as http:
            for group in _groups(http):
                for resource in http.get(group).json()["resources"]:
                    if "/" in resource["name"] or "list" not in resource["verbs"]:
                        continue
                    if resource["name"] in _PASSING:
                        continue
                    for item in http.get(f"{group}/{resource['name']}").json().get("items") or []:
                        meta = item["metadata"]
                        if (resource["name"], meta["name"]) in _IN_EACH_NAMESPACE:
                            continue
                        if (resource["name"], meta.get("namespace")) == _OF_CONTROLLERS:
                            continue
                        key = f"{resource['name']} {meta.get('namespace', '')}/{meta['name']}"
                        found[key] = meta["uid"]
        return found

    def get(self, path: str) -> Object | None:
        """None: there is none."""
        with self.kube.http() as http:
            answer = http.get(path)
        if answer.status_code == 404:
            return None
        found: Object = answer.json()
        return found

    def items(self, path: str) -> list[Object]:
        found = self.get(path) or {}
        return list(found.get("items") or [])

    def patch(self, path: str, change: Object) -> Object:
        """A merge."""
        with self.kube.http() as http:
            answer = http.patch(
                path, json=change, headers={"content-type": "application/merge-patch+json"}
            )
        assert answer.status_code == 200, answer.text
        found: Object = answer.json()
        return found

    def create(self, path: str, made: Object, *, dry_run: bool = False) -> tuple[int, Object]:
        """Status code and answer."""
        with self.kube.http() as http:
            answer = http.post(f"{path}{'?dryRun=All' if dry_run else ''}", json=made)
        return answer.status_code, answer.json()

    @contextmanager
    def namespace(self, name: str, **labels: str) -> Iterator[None]:
        """One that was there before atenet."""
        named = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        meta = {"name": name, "labels": named}
        code, answer = self.create("/api/v1/namespaces", {"metadata": meta})
        assert code == 201, answer
        yield
        with self.kube.http() as http:
            http.delete(f"/api/v1/namespaces/{name}")


def _groups(http: Any) -> Iterator[str]:
    yield "/api/v1"
    for group in http.get("/apis").json()["groups"]:
        yield f"/apis/{group['preferredVersion']['groupVersion']}"
