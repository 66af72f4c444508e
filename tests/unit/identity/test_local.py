"""The identity directory: made once, renewed in time, refused when it is not safe."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.identity import AUTHORITIES, Authority, LocalIdentity, Usage, spiffe
from atenet.identity.credential import Credential
from atenet.identity.pem import parse_certificates
from cryptography import x509


@pytest.fixture
def identity(tmp_path: Path) -> LocalIdentity:
    made = LocalIdentity(tmp_path / "state")
    made.ensure()
    return made


def _everything(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def _trusted(identity: LocalIdentity, name: str) -> list[x509.Certificate]:
    path = identity.trust(name)
    return parse_certificates(path.read_bytes(), path)


def test_all_authorities_are_made_once(identity: LocalIdentity) -> None:
    before = _everything(identity.root)
    identity.ensure()
    assert _everything(identity.root) == before
    issuers = {name: identity.authority(name).certificate for name in AUTHORITIES}
    assert len({c.fingerprint(c.signature_hash_algorithm) for c in issuers.values()}) == 4  # type: ignore[arg-type]
    for name, certificate in issuers.items():
        assert _trusted(identity, name) == [certificate]


def test_nothing_secret_is_open_to_others(identity: LocalIdentity) -> None:
    identity.credential("worker-1", spiffe.pod_id("default", "local"))
    for path in (identity.root, identity.root / "ca", identity.root / "identity" / "worker-1"):
        assert path.stat().st_mode & 0o777 == 0o700
    for path in identity.root.rglob("*"):
        if path.is_file() and b"PRIVATE KEY" in path.read_bytes():
            assert path.stat().st_mode & 0o777 == 0o600, path


@pytest.mark.parametrize(
    ("component", "usages"),
    [
        (spiffe.ROUTER_ID, {Usage.CLIENT}),
        (spiffe.CLI_ID, {Usage.CLIENT}),
        (spiffe.ATELET_ID, {Usage.CLIENT, Usage.SERVER}),
        (spiffe.pod_id("default", "local"), {Usage.CLIENT, Usage.SERVER}),
    ],
)
def test_a_pod_credential_has_one_uri_and_its_usages(
    identity: LocalIdentity, component: str, usages: set[Usage]
) -> None:
    want = Credential.load(identity.credential("c", component)).want()
    assert want.uri == component
    assert want.dns == (spiffe.pod_dns_name(component),)
    assert set(want.usages) == usages


def test_a_service_credential_has_no_uri(identity: LocalIdentity) -> None:
    names = ["atenet-router.ate-system.svc", "localhost", "127.0.0.1"]
    want = Credential.load(identity.service_credential("router", names)).want()
    assert (want.uri, want.dns, want.usages) == (None, tuple(names), (Usage.SERVER,))


def test_a_good_credential_is_left_alone(identity: LocalIdentity) -> None:
    path = identity.credential("router", spiffe.ROUTER_ID)
    before = path.read_bytes()
    assert identity.credential("router", spiffe.ROUTER_ID).read_bytes() == before
    assert identity.renew_due() == []


def test_a_credential_of_another_id_is_issued_anew(identity: LocalIdentity) -> None:
    identity.credential("x", spiffe.ROUTER_ID)
    path = identity.credential("x", spiffe.EGRESS_ID)
    assert Credential.load(path).want().uri == spiffe.EGRESS_ID


def _age(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    """Moves the clock of the identity package."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.now(UTC) + by

    for module in ("authority", "credential", "local"):
        monkeypatch.setattr(f"atenet.identity.{module}.datetime", Later)


def test_credentials_are_renewed_at_two_thirds_and_keep_their_names(
    identity: LocalIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = identity.credential("worker-1", spiffe.pod_id("default", "local"))
    service = identity.service_credential("ateapi", [spiffe.API_SERVER_NAME])
    old = Credential.load(pod)
    _age(monkeypatch, timedelta(hours=17))
    assert set(identity.renew_due()) == {pod, service}
    new = Credential.load(pod)
    assert new.want() == old.want()
    assert new.leaf.not_valid_after_utc > old.leaf.not_valid_after_utc
    assert new.key.private_numbers() != old.key.private_numbers()
    assert identity.renew_due() == []


def test_an_authority_changes_with_an_overlap(
    identity: LocalIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = identity.authority("pod-identity").certificate
    path = identity.credential("router", spiffe.ROUTER_ID)
    _age(monkeypatch, timedelta(days=200))
    identity.renew_due()
    assert identity.authority("pod-identity").certificate == old, "it issues still"
    both = _trusted(identity, "pod-identity")
    assert len(both) == 2
    _age(monkeypatch, timedelta(days=250))
    identity.renew_due()
    new = identity.authority("pod-identity").certificate
    assert new in both
    assert new != old
    Credential.load(path).leaf.verify_directly_issued_by(new)
    assert set(_trusted(identity, "pod-identity")) == {old, new}, "old leaves are still good"
    identity.ensure()
    assert not list((identity.root / "ca").glob("*.next.*"))
    _age(monkeypatch, timedelta(days=400))
    identity.ensure()
    assert _trusted(identity, "pod-identity") == [new], "an expired one is dropped"


def test_a_switch_that_was_cut_short_is_finished(identity: LocalIdentity) -> None:
    ca = identity.root / "ca"
    fresh = Authority.create("pod-identity")
    fresh.save(ca / "pod-identity.next.crt", ca / "pod-identity.next.key")
    # The key was replaced, the certificate not yet: then the power went.
    (ca / "pod-identity.key").write_bytes((ca / "pod-identity.next.key").read_bytes())
    identity.ensure()
    assert identity.authority("pod-identity").certificate == fresh.certificate
    assert not (ca / "pod-identity.next.crt").exists()


@pytest.mark.parametrize("path", ["ca/pod-identity.key", "identity/router/pod.pem"])
def test_a_loose_key_is_refused(identity: LocalIdentity, path: str) -> None:
    identity.credential("router", spiffe.ROUTER_ID)
    (identity.root / path).chmod(0o640)
    with pytest.raises(AteError, match=f"{path} has mode 0640") as caught:
        identity.credential("router", spiffe.ROUTER_ID)
    assert "chmod 600" in (caught.value.hint or "")


def test_a_loose_directory_is_refused(identity: LocalIdentity) -> None:
    (identity.root / "ca").chmod(0o755)
    with pytest.raises(AteError, match="ca has mode 0755"):
        identity.ensure()


def test_a_damaged_credential_is_named(identity: LocalIdentity) -> None:
    path = identity.credential("router", spiffe.ROUTER_ID)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(AteError, match=r"router/pod\.pem is damaged"):
        identity.credential("router", spiffe.ROUTER_ID)


def test_a_missing_authority_that_peers_trust_is_not_replaced_in_silence(
    identity: LocalIdentity,
) -> None:
    (identity.root / "ca" / "pod-identity.crt").unlink()
    with pytest.raises(AteError, match=r"pod-identity\.crt is missing"):
        identity.ensure()


def test_an_unknown_authority_is_named(identity: LocalIdentity) -> None:
    with pytest.raises(AteError, match="no authority 'x'"):
        identity.trust("x")


def test_two_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from atenet.identity import LocalIdentity, spiffe\n"
        "i = LocalIdentity(Path(sys.argv[1])); i.ensure()\n"
        "i.credential('router', spiffe.ROUTER_ID)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [p.wait(60) for p in processes] == [0] * 4
    identity = LocalIdentity(tmp_path / "state")
    for name in AUTHORITIES:
        assert _trusted(identity, name) == [identity.authority(name).certificate]
    leaf = Credential.load(identity.credential("router", spiffe.ROUTER_ID)).leaf
    leaf.verify_directly_issued_by(identity.authority("pod-identity").certificate)
