"""The file of authorities: which one mints, and when another does."""

from pathlib import Path

import pytest
from atenet.errors import AteError
from atenet.identity import pem
from atenet.identity.authority import Authority
from atenet.sdsmint.pool import CaPool, read_pool

from tests.unit.sdsmint.authorities import bundle, expired, write


def test_the_first_authority_that_is_valid_now_mints(tmp_path: Path) -> None:
    old, one, two = expired(), Authority.create("one"), Authority.create("two")
    file = write(tmp_path / "pool.pem", bundle(old, one, two))
    assert read_pool([file]).certificate == one.certificate


def test_keys_and_certificates_find_each_other_in_any_order(tmp_path: Path) -> None:
    one, two = Authority.create("one"), Authority.create("two")
    content = pem.certificate_pem(two.certificate) + pem.key_pem(one.key) + bundle(two)
    signer = read_pool([write(tmp_path / "pool.pem", content)])
    assert signer.certificate == two.certificate
    assert signer.key.public_key() == two.key.public_key()
    assert signer.chain == ()


def test_what_cannot_mint_is_refused_by_name(tmp_path: Path) -> None:
    one, two = Authority.create("one"), Authority.create("two")
    for content, said in [
        (pem.certificate_pem(one.certificate), "no private key"),
        (pem.key_pem(two.key) + pem.certificate_pem(one.certificate), "whose key is there"),
        (bundle(expired()), "valid now"),
    ]:
        with pytest.raises(AteError, match=said):
            read_pool([write(tmp_path / "pool.pem", content)])


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "pool.pem", bundle(Authority.create("one")))
    file.chmod(0o640)
    with pytest.raises(AteError, match="0640"):
        CaPool([file])


def test_another_file_is_another_authority_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    one, two = Authority.create("one"), Authority.create("two")
    file = write(tmp_path / "pool.pem", bundle(one))
    pool = CaPool([file])
    assert not pool.reload()
    write(file, b"nonsense")
    assert not pool.reload()
    assert pool.signer.certificate == one.certificate
    write(file, bundle(two))
    assert pool.reload()
    assert pool.signer.certificate == two.certificate
    # The same authority first, another behind it: nobody's leaf is any the worse.
    write(file, bundle(two, one))
    assert not pool.reload()


def test_key_and_certificate_may_stand_in_files_of_their_own(tmp_path: Path) -> None:
    one = Authority.create("one")
    certificate, key = tmp_path / "ca.crt", tmp_path / "ca.key"
    one.save(certificate, key)
    assert read_pool([certificate, key]).certificate == one.certificate
    key.chmod(0o644)
    with pytest.raises(AteError, match="0644"):
        read_pool([certificate, key])
