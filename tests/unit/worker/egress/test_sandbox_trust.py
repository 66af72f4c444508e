"""The bundle that actors trust: made of two files, written anew when one changes, whole at any moment."""

import os
from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.identity.authority import Authority
from atenet.identity.pem import certificate_pem
from atenet.worker.egress.sandbox_trust import BUNDLE, INTERCEPTION, MOUNT, VARIABLES, SandboxTrust
from cryptography import x509


def pem(name: str) -> bytes:
    return certificate_pem(Authority.create(name).certificate)


@pytest.fixture
def trust(tmp_path: Path) -> SandboxTrust:
    (tmp_path / "mitm.pem").write_bytes(pem("egress-mitm"))
    (tmp_path / "public.pem").write_bytes(b"# a comment\n" + pem("pod-identity"))
    return SandboxTrust(tmp_path / "trust", tmp_path / "mitm.pem", tmp_path / "public.pem")


def shown(trust: SandboxTrust, path: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates((trust.directory / Path(path).name).read_bytes())


def test_the_bundle_holds_the_authority_and_the_public_roots(trust: SandboxTrust) -> None:
    assert trust.write()
    assert len(shown(trust, BUNDLE)) == 2
    assert len(shown(trust, INTERCEPTION)) == 1
    for name in (BUNDLE, INTERCEPTION):
        assert (trust.directory / Path(name).name).stat().st_mode & 0o777 == 0o644
    assert trust.directory.stat().st_mode & 0o005 == 0o005


def test_it_is_written_anew_only_when_something_changed(trust: SandboxTrust) -> None:
    assert trust.write()
    before = (trust.directory / Path(BUNDLE).name).stat().st_ino
    assert not trust.write()
    fresh = trust.interception.with_name("fresh")
    fresh.write_bytes(trust.interception.read_bytes() + pem("egress-mitm"))
    fresh.rename(trust.interception)
    assert trust.write()
    assert (trust.directory / Path(BUNDLE).name).stat().st_ino != before
    assert len(shown(trust, INTERCEPTION)) == 2


@pytest.mark.parametrize("which", ["interception", "public"])
def test_a_bad_file_is_named_and_the_last_bundle_stays(trust: SandboxTrust, which: str) -> None:
    trust.write()
    bad: Path = getattr(trust, which)
    bad.write_text("no certificate")
    os.utime(bad, ns=(1, 1))
    with pytest.raises(AteError, match=str(bad)):
        trust.write()
    assert len(shown(trust, BUNDLE)) == 2
    bad.unlink()
    with pytest.raises(AteError, match=str(bad)):
        trust.write()


def test_every_container_gets_the_directory_and_the_variables(trust: SandboxTrust) -> None:
    common = trust.common
    (bind,) = common.binds
    assert (bind.source, bind.target, bind.read_only) == (trust.directory, MOUNT, True)
    assert common.environment == VARIABLES
    assert set(VARIABLES.values()) == {BUNDLE, INTERCEPTION}
    for name in (
        *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"),
        *("CURL_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "DENO_CERT", "CARGO_HTTP_CAINFO"),
    ):
        assert name in VARIABLES
