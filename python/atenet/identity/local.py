"""The identity of a system on one machine: authorities and credentials below one directory.

```
ca/<authority>.{key,crt}          the issuing authority; <authority>.next.{key,crt} its successor
trust/<authority>.pem             what peers verify with: every certificate still valid
identity/<component>/pod.pem      key and chain, SPIFFE id
identity/<component>/service.pem  key and chain, DNS names
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from atenet.errors import AteError
from atenet.identity import credential, files, pem, spiffe
from atenet.identity.authority import Authority, Usage
from atenet.identity.credential import Credential, Want
from atenet.identity.renewal import AuthorityStep, authority_step

__all__ = ["AUTHORITIES", "LocalIdentity", "pod_want"]

AUTHORITIES = ("pod-identity", "service-dns", "actor-identity", "egress-mitm")

# Components that only ever dial; every other pod also serves with its pod certificate.
_CLIENTS_ONLY = frozenset(
    {spiffe.ROUTER_ID, spiffe.EGRESS_ID, spiffe.API_ID, spiffe.CONTROLLER_ID, spiffe.CLI_ID}
)


def pod_want(spiffe_id: str, node: str | None = None) -> Want:
    """What a pod certificate says: one URI, the DNS name derived from it, its usages.

    A node agent's also says which `node` it speaks for.
    """
    clients_only = spiffe_id in _CLIENTS_ONLY
    usages = (Usage.CLIENT,) if clients_only else (Usage.CLIENT, Usage.SERVER)
    names: tuple[str, ...] = (spiffe.pod_dns_name(spiffe_id),)
    if node is not None:
        names += (spiffe.node_dns_name(spiffe_id, node),)
    return Want(spiffe_id, names, usages)


class LocalIdentity:
    """Makes and renews everything below `root`; safe to use from several processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ensure(self) -> None:
        """Makes the directories, the four authorities and the trust bundles where missing.

        Raises AteError, naming the file, for loose modes and damaged files.
        """
        for directory in (self.root, self._ca, self.root / "identity", self.root / "trust"):
            files.private_directory(directory)
        with self._lock():
            for name in AUTHORITIES:
                self._ensure_authority(name)

    def authority(self, name: str) -> Authority:
        """The authority that issues now. Raises AteError."""
        _known(name)
        return Authority.load(*self._files(name), name=name)

    def trust(self, name: str) -> Path:
        """The bundle with which peers of this authority are verified."""
        _known(name)
        return self.root / "trust" / f"{name}.pem"

    def credential(self, component: str, spiffe_id: str, *, node: str | None = None) -> Path:
        """The component's pod credential, issued or renewed if need be; a node agent's names its
        `node`."""
        return self._credential(component, "pod.pem", pod_want(spiffe_id, node), "pod-identity")

    def service_credential(self, component: str, dns_names: Sequence[str]) -> Path:
        """The component's server credential for these DNS names (or IP literals)."""
        want = Want(None, tuple(dns_names), (Usage.SERVER,))
        return self._credential(component, "service.pem", want, "service-dns")

    def renew_due(self) -> list[Path]:
        """Renews what is past two thirds of its life; authorities first. Returns what was written.

        Idempotent: a second call right after it returns an empty list.
        """
        now = datetime.now(UTC)
        with self._lock():
            written = [p for name in AUTHORITIES for p in self._renew_authority(name, now)]
            pods, services = self.authority("pod-identity"), self.authority("service-dns")
            for path in self._credentials():
                issuer = pods if path.name == "pod.pem" else services
                if credential.ensure(path, Credential.load(path).want(), issuer, now=now):
                    written.append(path)
        return written

    @property
    def _ca(self) -> Path:
        return self.root / "ca"

    def _lock(self) -> AbstractContextManager[None]:
        return files.locked(self._ca / ".lock")

    def _files(self, name: str, suffix: str = "") -> tuple[Path, Path]:
        return self._ca / f"{name}{suffix}.crt", self._ca / f"{name}{suffix}.key"

    def _credentials(self) -> Iterable[Path]:
        found = (self.root / "identity").glob("*/*.pem")
        return sorted(p for p in found if p.name in ("pod.pem", "service.pem"))

    def _credential(self, component: str, file: str, want: Want, issuer: str) -> Path:
        path = files.private_directory(self.root / "identity" / component) / file
        with self._lock():
            credential.ensure(path, want, self.authority(issuer))
        return path

    def _ensure_authority(self, name: str) -> None:
        certificate, key = self._files(name)
        self._finish_switch(name)
        if not certificate.exists():
            # A key without its certificate is a start that was cut short, unless peers already
            # trust something: then a new authority would silently orphan every leaf.
            if self.trust(name).exists():
                raise AteError(
                    f"{certificate} is missing but {self.trust(name)} is there",
                    hint="restore it from a backup, or delete the state directory to start anew",
                )
            Authority.create(name).save(certificate, key)
        self._write_trust(name, self.authority(name))

    def _renew_authority(self, name: str, now: datetime) -> list[Path]:
        self._finish_switch(name)
        current, successor = self.authority(name), self._files(name, ".next")
        step = authority_step(
            current.certificate.not_valid_before_utc,
            current.certificate.not_valid_after_utc,
            now,
            has_successor=successor[0].exists(),
        )
        if step is AuthorityStep.NONE:
            return []
        if step is AuthorityStep.PREPARE:
            fresh = Authority.create(name)
            fresh.save(*successor)
            self._write_trust(name, current, fresh)
            return [successor[0], self.trust(name)]
        fresh = Authority.load(*successor, name=name)
        self._write_trust(name, current, fresh)
        self._switch(name, fresh)
        return [self._files(name)[0]]

    def _switch(self, name: str, fresh: Authority) -> None:
        fresh.save(*self._files(name))
        for path in self._files(name, ".next"):
            path.unlink(missing_ok=True)

    def _finish_switch(self, name: str) -> None:
        """A switch that a crash cut short: the key is the successor's, the certificate is not."""
        (_, key), successor = self._files(name), self._files(name, ".next")
        if not (key.exists() and successor[1].exists()):
            return
        if files.read_private(key) == files.read_private(successor[1]):
            self._switch(name, Authority.load(*successor, name=name))

    def _write_trust(self, name: str, *issuers: Authority) -> None:
        """Keeps every certificate of the bundle that is still valid, and adds the issuers'."""
        path, now = self.trust(name), datetime.now(UTC)
        old = pem.parse_certificates(path.read_bytes(), path) if path.exists() else []
        wanted = [i.certificate for i in issuers]
        kept = [c for c in old if c not in wanted and c.not_valid_after_utc > now]
        content = pem.certificate_pem(*wanted, *kept)
        if not path.exists() or path.read_bytes() != content:
            files.write_public(path, content)


def _known(name: str) -> None:
    if name not in AUTHORITIES:
        raise AteError(f"no authority {name!r}", hint=f"one of {', '.join(AUTHORITIES)}")
