"""Recent denials over mTLS: who may read them, and what is said."""

import json
from pathlib import Path

import pytest
from atenet.client.request import ClientTls
from atenet.denials.client import fetch_denials
from atenet.denials.denial import Denial
from atenet.denials.server import page, serving_denials
from atenet.denials.settings import DenialsSettings
from atenet.errors import AteError
from atenet.identity import LocalIdentity, spiffe
from atenet.pages import Query

NAME = spiffe.EGRESS_SERVER_NAME
ENTRY = {
    "first": "2026-01-31T12:00:00.123Z",
    "last": "2026-01-31T12:00:01.000Z",
    "times": 2,
    "kind": "tls",
    "host": "a.example",
    "port": 443,
    "rule": None,
    "reason": "no-egress-rule",
    "detail": "no egress rule covers this host",
}


def read(actor: str) -> str:
    if actor.count("/") != 1:
        raise ValueError("actor: must be <atespace>/<actor> with exactly one slash")
    return json.dumps([ENTRY] if actor == "team/agent" else [])


@pytest.fixture
def identity(tmp_path: Path) -> LocalIdentity:
    made = LocalIdentity(tmp_path)
    made.ensure()
    return made


def settings(identity: LocalIdentity) -> DenialsSettings:
    return DenialsSettings(
        denials_listen="127.0.0.1:0",
        denials_credential=identity.service_credential("egress", [NAME]),
        denials_trust=identity.trust("pod-identity"),
    )


def asked(
    identity: LocalIdentity, address: str, actor: str, credential: Path | None
) -> list[Denial]:
    context = ClientTls(roots=identity.trust("service-dns"), credential=credential).context()
    return fetch_denials(address, NAME, actor, context)


def test_the_local_person_reads_what_the_engine_says(identity: LocalIdentity) -> None:
    person = identity.credential("cli", spiffe.CLI_ID)
    with serving_denials(settings(identity), read) as address:
        assert address is not None
        (found,) = asked(identity, address, "team/agent", person)
        assert (found.kind, found.host, found.port, found.rule) == ("tls", "a.example", 443, None)
        assert (found.times, found.reason) == (2, "no-egress-rule")
        assert found.last > found.first
        assert found.data()["host"] == "a.example"
        assert asked(identity, address, "team/other", person) == []
        with pytest.raises(AteError, match="400: actor: must be"):
            asked(identity, address, "nobody", person)


def test_another_identity_of_the_same_authority_may_not(identity: LocalIdentity) -> None:
    router = identity.credential("router", spiffe.ROUTER_ID)
    with serving_denials(settings(identity), read) as address:
        assert address is not None
        with pytest.raises(AteError, match="403"):
            asked(identity, address, "team/agent", router)


def test_nobody_without_a_certificate_is_answered(identity: LocalIdentity) -> None:
    with serving_denials(settings(identity), read) as address:
        assert address is not None
        with pytest.raises(AteError, match="cannot be asked"):
            asked(identity, address, "team/agent", None)


@pytest.mark.parametrize("peer", [None, "", "spiffe://cluster.local/ns/ate-system/sa/ate-cli/"])
def test_an_identity_is_compared_as_it_is_spelled(peer: str | None) -> None:
    query = Query("", "actor=team/agent", peer)
    assert page(read, {spiffe.CLI_ID}, query).status.startswith("403")


def test_it_is_off_unless_an_address_is_given() -> None:
    with serving_denials(DenialsSettings(), read) as address:
        assert address is None


@pytest.mark.parametrize("missing", ["denials_credential", "denials_trust"])
def test_an_address_needs_its_files(missing: str) -> None:
    given = {"denials_credential": Path("a"), "denials_trust": Path("b"), missing: None}
    with (
        pytest.raises(AteError, match=f"--{missing.replace('_', '-')}"),
        serving_denials(DenialsSettings(denials_listen="127.0.0.1:0", **given), read),
    ):
        pass
